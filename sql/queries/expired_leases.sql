-- Which leases have expired, the oldest first.
-- $1 timestamptz: now; $2 int: how many at the most
SELECT l.id
  FROM recur.live_dispatches AS l
 WHERE l.status = 'running' AND l.lease_expires_at <= $1
 ORDER BY l.lease_expires_at
 LIMIT $2
