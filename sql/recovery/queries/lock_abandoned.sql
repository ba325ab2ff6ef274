-- Locks running dispatches that were claimed longer ago than this.
-- $1 interval: age
SELECT l.id
  FROM recur_internal.live_dispatches AS l
 WHERE l.status = 'running' AND l.started_at < clock_timestamp() - $1
   FOR UPDATE SKIP LOCKED
