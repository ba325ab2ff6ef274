-- Forgets what went wrong at an endpoint. Returns whether anything kept deliveries back.
-- $1 int: owner; $2 text: name
UPDATE recur_internal.endpoint_health AS h
   SET failures = 0, failing_since = NULL, paused_until = NULL, throttled_until = NULL, disabled_at = NULL,
       disabled_reason = NULL
  FROM (SELECT o.owner_id, o.endpoint, o.paused_until IS NOT NULL OR o.disabled_at IS NOT NULL AS was_held
          FROM recur_internal.endpoint_health AS o
         WHERE o.owner_id = $1 AND o.endpoint = $2
           FOR UPDATE) AS before
 WHERE h.owner_id = before.owner_id AND h.endpoint = before.endpoint
RETURNING before.was_held
