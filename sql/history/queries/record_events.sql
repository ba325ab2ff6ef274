-- Events that workers record. All of them are stored; which are announced depends on mute and mute_interval. A row of
-- progress that a consumer has locked is skipped: the dispatcher waits for no lock.
-- $1 uuid[]: actions; $2 text[]: kinds; $3 text[]: details, as JSON; $4 text: actor; $5 smallint: history partition;
-- $6 boolean: the NOTIFY queue has room
WITH recorded AS (
    INSERT INTO recur_internal.events (kind, action_id, owner_id, actor, detail, partition)
    SELECT u.kind, u.action_id, d.owner_id, $4, u.detail::jsonb, $5
      FROM unnest($1, $2, $3) AS u (action_id, kind, detail)
      JOIN recur_internal.definitions AS d ON d.id = u.action_id
    RETURNING id, kind, action_id
), audible AS (
    SELECT d.id, d.mute_interval IS NOT NULL AS is_limited
      FROM recur_internal.definitions AS d
      JOIN recur_internal.progress AS p ON p.action_id = d.id
     WHERE $6 AND d.id = ANY ($1) AND NOT d.mute
       AND (d.mute_interval IS NULL OR p.announced_at IS NULL
            OR p.announced_at <= recur.clock() - d.mute_interval)
), noted AS (
    UPDATE recur_internal.progress AS p
       SET announced_at = recur.clock()
     WHERE p.action_id IN (SELECT l.action_id FROM recur_internal.progress AS l
                            WHERE l.action_id IN (SELECT a.id FROM audible AS a WHERE a.is_limited)
                              FOR UPDATE SKIP LOCKED)
)
SELECT pg_notify('recur_events', json_build_object('id', r.id, 'kind', r.kind, 'action_id', r.action_id)::text)
  FROM recorded AS r
  JOIN audible AS a ON a.id = r.action_id
 WHERE NOT a.is_limited OR r.id = (SELECT min(o.id) FROM recorded AS o WHERE o.action_id = r.action_id)
