-- Locks dispatches whose lease has expired, except for those that would fail for good and whose progress is locked
-- elsewhere. Whether an action has progress is not asked with EXISTS, for which the planner may read all progress.
-- $1 timestamptz: now; $2 int: at most this many; $3 uuid[]: only these dispatches, or NULL; $4 uuid[]: actions whose
-- progress is locked here
SELECT l.id, l.attempt, l.releases, l.max_attempts, l.cancel_requested
  FROM recur_internal.live_dispatches AS l
 WHERE l.status = 'running' AND l.lease_expires_at <= $1
   AND (l.cancel_requested OR l.attempt - l.releases < l.max_attempts
        OR l.action_id IS NULL OR l.action_id = ANY ($4)
        OR (SELECT p.action_id FROM recur_internal.progress AS p WHERE p.action_id = l.action_id) IS NULL)
   AND ($3 IS NULL OR l.id = ANY ($3))
 ORDER BY l.lease_expires_at
 LIMIT $2
   FOR UPDATE OF l SKIP LOCKED
