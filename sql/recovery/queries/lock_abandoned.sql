-- Locks running dispatches whose last sign of life, the claim or an extended lease, is longer ago than this.
-- What an executor runs has no end of its lease: whether its process lives is known.
-- $1 interval: age
SELECT l.id
  FROM recur_internal.live_dispatches AS l
 WHERE l.status = 'running' AND l.lease_expires_at < 'infinity'
   AND greatest(l.started_at, l.extended_at) < recur.clock() - $1
   FOR UPDATE SKIP LOCKED
