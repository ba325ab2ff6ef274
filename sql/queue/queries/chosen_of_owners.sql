SELECT c.id FROM (
        SELECT p.id, p.available_at, p.created_at
          -- Read ahead, without locks: how many of the first dispatches are of which owner. At most as many owners as
          -- dispatches have a part in them: those with the oldest ones.
          FROM (SELECT f.owner_id, count(*) AS number
                  FROM (SELECT o.owner_id, p.available_at, p.created_at
                          FROM (SELECT o.owner_id
                                  FROM unnest($10) AS o (owner_id) CROSS JOIN LATERAL ({{waiting}} LIMIT 1) AS p
                                 ORDER BY p.available_at, p.created_at
                                 LIMIT CASE WHEN $17 THEN $14 END) AS o
                         CROSS JOIN LATERAL ({{waiting}} LIMIT CASE WHEN $17 THEN $14 ELSE 1 END) AS p
                         ORDER BY p.available_at, p.created_at
                         LIMIT CASE WHEN $17 THEN $14 END) AS f
                 GROUP BY f.owner_id) AS share
         CROSS JOIN LATERAL (
            SELECT p.id, p.available_at, p.created_at
              FROM recur_internal.live_dispatches AS p
             WHERE {{pending}} AND p.owner_id = share.owner_id AND {{selected}}
               AND (p.lock_group IS NULL OR recur_internal.group_is_free(p.lock_group, p.owner_id, p.id, $1))
             ORDER BY p.available_at, p.created_at
             LIMIT CASE WHEN $17 THEN share.number ELSE $14 END
               FOR UPDATE SKIP LOCKED) AS p
         WHERE NOT $13
            OR (SELECT h.priority
                  FROM unnest($10) AS o (owner_id)
                 CROSS JOIN LATERAL (
                    SELECT p.priority FROM recur_internal.live_dispatches AS p
                     WHERE {{pending}} AND p.owner_id = o.owner_id AND p.priority > $2
                     ORDER BY p.priority DESC LIMIT 1) AS h
                 LIMIT 1) IS NULL
         LIMIT $14) AS c
         ORDER BY c.available_at, c.created_at, c.id
