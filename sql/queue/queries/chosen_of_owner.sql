SELECT p.id
          FROM recur_internal.live_dispatches AS p
         WHERE {{pending}} AND p.owner_id = $10 AND {{selected}}
           AND (NOT $13 OR (SELECT p.priority FROM recur_internal.live_dispatches AS p
                             WHERE {{pending}} AND p.owner_id = $10 AND p.priority > $2
                             ORDER BY p.priority DESC LIMIT 1) IS NULL)
           AND (p.lock_group IS NULL OR recur_internal.group_is_free(p.lock_group, p.owner_id, p.id, $1))
         ORDER BY p.available_at, p.created_at
         LIMIT $14
           FOR UPDATE SKIP LOCKED
