-- Dispatches that have become available since: retries, delayed and staged ones.
-- $1 timestamptz: after; $2 timestamptz: up to; $3 bigint: at most this many
SELECT l.id, l.action_id, l.scheduled_at, l.namespace, l.tenant, l.provider, l.action_type, l.notify_channel,
       l.trigger = 'schedule' AND l.attempt = 0, l.available_at
  FROM recur_internal.live_dispatches AS l
 WHERE l.status = 'pending' AND l.available_at > l.created_at AND l.available_at > $1 AND l.available_at <= $2
 ORDER BY l.available_at
 LIMIT $3
