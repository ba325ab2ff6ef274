-- Writes what is known of an endpoint after a delivery. A success keeps what was last wrong, and the other way round.
-- $1 int: owner; $2 text: name; $3 timestamptz: now; $4 boolean: was it delivered?; $5 int: HTTP status; $6 text:
-- reason; $7 int: failures; $8 to $11 timestamptz: failing since, paused until, throttled until, disabled at;
-- $12 text: why it is disabled now, or NULL
UPDATE recur_internal.endpoint_health AS h
   SET failures = $7, failing_since = $8, paused_until = $9, throttled_until = $10, disabled_at = $11,
       disabled_reason = CASE WHEN $11 IS NULL THEN NULL ELSE coalesce($12, h.disabled_reason) END,
       last_status = coalesce($5, h.last_status),
       last_error = CASE WHEN $4 THEN h.last_error ELSE left($6, 500) END,
       last_failed_at = CASE WHEN $4 THEN h.last_failed_at ELSE $3 END,
       last_delivered_at = CASE WHEN $4 THEN $3 ELSE h.last_delivered_at END
 WHERE h.owner_id = $1 AND h.endpoint = $2
