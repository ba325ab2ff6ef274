-- Which leases have expired, the oldest first.
-- $1 timestamptz: now; $2 int: at most this many
SELECT l.id
  FROM recur_internal.live_dispatches AS l
 WHERE l.status = 'running' AND l.lease_expires_at <= $1
 ORDER BY l.lease_expires_at
 LIMIT $2
