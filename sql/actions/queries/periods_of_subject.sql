SELECT s.action_id, s.from_id, s.until_id, s.from_at, s.until_at, s.first_version, s.next_version
  FROM (SELECT c.action_id, c.id AS until_id, c.at AS until_at, c.detail #>> '{old,subject}' AS subject,
               lag(c.id) OVER w AS from_id, lag(c.at) OVER w AS from_at,
               lag(c.detail #>> '{new,context_version}') OVER w AS first_version,
               c.detail #>> '{new,context_version}' AS next_version
          FROM recur_internal.events AS c
         WHERE c.action_id IN (SELECT o.action_id FROM recur_internal.events AS o
                                WHERE o.detail #>> '{old,subject}' = $1 AND ($4 IS NULL OR o.owner_id = ANY ($4)))
           AND c.detail -> 'old' ? 'subject'
        WINDOW w AS (PARTITION BY c.action_id ORDER BY c.id)) AS s
 WHERE s.subject = $1
   AND (($2 IS NULL AND $3 IS NULL)
        OR EXISTS (SELECT FROM recur_internal.definitions AS d
                    WHERE d.id = s.action_id AND ($2 IS NULL OR d.namespace = $2) AND ($3 IS NULL OR d.tenant = $3))
        OR EXISTS (SELECT FROM recur_internal.events AS n
                    WHERE n.action_id = s.action_id AND ($2 IS NULL OR n.detail ->> 'namespace' = $2)
                      AND ($3 IS NULL OR n.detail ->> 'tenant' = $3)))
