-- Locks endpoints to claim for: of two claims, one leaves an endpoint to the other.
-- $1 int[]: owners; $2 text[]: names
SELECT h.owner_id, h.endpoint, h.failures, h.failing_since, h.paused_until, h.throttled_until, h.disabled_at, h.tokens,
       h.tokens_at
  FROM recur_internal.endpoint_health AS h
  JOIN unnest($1, $2) AS u (owner_id, endpoint) ON u.owner_id = h.owner_id AND u.endpoint = h.endpoint
 ORDER BY h.owner_id, h.endpoint
   FOR UPDATE OF h SKIP LOCKED
