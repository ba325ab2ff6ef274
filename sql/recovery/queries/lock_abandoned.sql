-- Locks running dispatches whose last sign of life, the claim or an extended lease, is longer ago than this.
-- $1 interval: age
SELECT l.id
  FROM recur_internal.live_dispatches AS l
 WHERE l.status = 'running' AND greatest(l.started_at, l.extended_at) < recur.clock() - $1
   FOR UPDATE SKIP LOCKED
