-- Locks webhooks that are due and have no endpoint yet, the oldest first. "Not running" is the word of the index.
-- $1 timestamptz: now; $2 int: at most this many
SELECT l.id, l.owner_id, l.action_type
  FROM recur_internal.live_dispatches AS l
 WHERE l.status <> 'running' AND l.provider = 'webhook' AND l.endpoint IS NULL AND l.available_at <= $1
   AND l.primary_agent IS NULL
 ORDER BY l.available_at
 LIMIT $2
   FOR UPDATE SKIP LOCKED
