SELECT c.id
          FROM priorities AS h
         CROSS JOIN LATERAL (
            SELECT p.id
              FROM recur_internal.live_dispatches AS p
             WHERE p.in_database AND p.status <> 'running' AND p.owner_id = $3 AND p.priority = h.priority
               AND p.available_at <= $1 AND p.primary_agent IS NULL
               AND (p.lock_group IS NULL OR recur_internal.group_is_free(p.lock_group, p.owner_id, p.id, $1))
             ORDER BY p.available_at, p.created_at
             LIMIT 1
               FOR UPDATE SKIP LOCKED) AS c
         LIMIT 1
