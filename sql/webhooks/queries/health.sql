-- What is known of an endpoint, and whether a success was noted a moment ago. {lock} is FOR UPDATE SKIP
-- LOCKED where it is to be changed.
-- $1 int: owner; $2 text: name; $3 timestamptz: now
SELECT h.failures, h.failing_since, h.paused_until, h.throttled_until, h.disabled_at,
       coalesce(h.last_delivered_at > $3 - interval '1 second' AND h.last_delivered_at <= $3, false)
  FROM recur_internal.endpoint_health AS h
 WHERE h.owner_id = $1 AND h.endpoint = $2
   {{lock}}
