SELECT p.available_at, p.created_at
  FROM recur_internal.live_dispatches AS p
 WHERE {{pending}} AND p.owner_id = o.owner_id AND {{selected}}
   AND (p.lock_group IS NULL
        OR (SELECT r.id FROM recur_internal.live_dispatches AS r
             WHERE r.lock_group = p.lock_group AND r.owner_id = p.owner_id AND r.status = 'running') IS NULL)
 ORDER BY p.available_at, p.created_at
