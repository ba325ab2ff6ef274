-- When the next dispatch becomes available that is not yet.
-- $1 timestamptz: now
SELECT l.available_at
  FROM recur.live_dispatches AS l
 WHERE l.status = 'pending' AND l.available_at > l.created_at AND l.available_at > $1
 ORDER BY l.available_at
 LIMIT 1
