SELECT p.id
          FROM recur_internal.live_dispatches AS p
         WHERE p.id = $5 AND p.in_database AND p.status <> 'running' AND p.owner_id = $3
           AND p.available_at <= $1 AND p.primary_agent IS NULL AND p.lock_group IS NULL
           FOR UPDATE SKIP LOCKED
