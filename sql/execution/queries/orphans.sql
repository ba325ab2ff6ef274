-- Attempts without an end: those of executors, and of executors that are gone.
SELECT l.id, l.attempt, l.cancel_requested
  FROM recur_internal.live_dispatches AS l
 WHERE l.status = 'running' AND l.lease_expires_at = 'infinity'
