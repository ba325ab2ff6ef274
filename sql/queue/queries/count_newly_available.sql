-- What newly_available.sql finds, counted by channel and provider, and how many are first attempts at an occurrence.
-- $1 timestamptz: after; $2 timestamptz: up to; $3 bigint: at most this many, or NULL
SELECT f.notify_channel, f.provider, count(*),
       count(*) FILTER (WHERE f.is_scheduled), min(f.available_at) FILTER (WHERE f.is_scheduled)
  FROM (SELECT l.notify_channel, l.provider, l.trigger = 'schedule' AND l.attempt = 0 AS is_scheduled, l.available_at
          FROM recur_internal.live_dispatches AS l
         WHERE l.status = 'pending' AND l.available_at > l.created_at AND l.available_at > $1 AND l.available_at <= $2
         ORDER BY l.available_at
         LIMIT $3) AS f
 GROUP BY f.notify_channel, f.provider
