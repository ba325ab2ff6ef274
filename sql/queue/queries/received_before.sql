-- The latest dispatch with the same key that was received within a window, in whatever state. What is running or has
-- finished counts as well: otherwise a delivery that is repeated after its work is done would be done again.
-- $1 text: dedup key; $2 text: namespace; $3 text: tenant; $4 int: owner; $5 text: provider; $6 text: action type; $7
-- interval: window
SELECT r.id
  FROM (SELECT l.id, l.created_at FROM recur_internal.live_dispatches AS l
         WHERE l.dedup_key = $1 AND l.namespace = $2 AND l.tenant = $3 AND l.owner_id = $4 AND l.provider = $5
           AND l.action_type = $6 AND l.trigger = 'webhook' AND l.created_at > recur.clock() - $7
        UNION ALL
        SELECT f.id, f.created_at FROM recur_internal.finished_dispatches AS f
         WHERE f.dedup_key = $1 AND f.namespace = $2 AND f.tenant = $3 AND f.owner_id = $4 AND f.provider = $5
           AND f.action_type = $6 AND f.trigger = 'webhook' AND f.created_at > recur.clock() - $7) AS r
 ORDER BY r.created_at DESC
 LIMIT 1
