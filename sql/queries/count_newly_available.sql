-- The same, counted by channel and provider, and how many of them are first attempts at an occurrence.
-- $1 timestamptz: after; $2 timestamptz: up to
SELECT l.notify_channel, l.provider, count(*),
       count(*) FILTER (WHERE l.trigger = 'schedule' AND l.attempt = 0),
       min(l.available_at) FILTER (WHERE l.trigger = 'schedule' AND l.attempt = 0)
  FROM recur.live_dispatches AS l
 WHERE l.status = 'pending' AND l.available_at > l.created_at AND l.available_at > $1 AND l.available_at <= $2
 GROUP BY l.notify_channel, l.provider
