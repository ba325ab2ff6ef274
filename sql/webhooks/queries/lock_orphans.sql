-- Locks webhooks that are due for an endpoint that is gone.
-- $1 int: owner; $2 text: endpoint; $3 timestamptz: now; $4 int: at most this many
SELECT p.id
  FROM recur_internal.live_dispatches AS p
 WHERE p.status <> 'running' AND p.endpoint IS NOT NULL AND p.owner_id = $1 AND p.endpoint = $2 AND p.available_at <= $3
   AND (SELECT e.name FROM recur_internal.endpoints AS e WHERE e.owner_id = $1 AND e.name = $2) IS NULL
 LIMIT $4
   FOR UPDATE SKIP LOCKED
