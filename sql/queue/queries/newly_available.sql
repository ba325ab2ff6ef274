-- Dispatches that have become available after one instant and up to another: retries, delayed and staged ones.
-- {announced} is announced_columns.sql.
-- $1 timestamptz: after; $2 timestamptz: up to; $3 bigint: at most this many
SELECT {{announced}}, l.trigger = 'schedule' AND l.attempt = 0, l.available_at
  FROM recur_internal.live_dispatches AS l
 WHERE l.status = 'pending' AND l.available_at > l.created_at AND l.available_at > $1 AND l.available_at <= $2
 ORDER BY l.available_at
 LIMIT $3
