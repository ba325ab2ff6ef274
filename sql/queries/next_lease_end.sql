-- When the next lease ends.
SELECT l.lease_expires_at FROM recur.live_dispatches AS l WHERE l.status = 'running' ORDER BY l.lease_expires_at LIMIT 1
