-- The same, counted by channel and provider.
-- $1 timestamptz: after; $2 timestamptz: up to
SELECT l.notify_channel, l.provider, count(*)
  FROM recur.live_dispatches AS l
 WHERE l.status = 'pending' AND l.available_at > l.created_at AND l.available_at > $1 AND l.available_at <= $2
 GROUP BY l.notify_channel, l.provider
