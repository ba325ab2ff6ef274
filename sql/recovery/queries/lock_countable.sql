-- Locks the progress of actions of which a dispatch is about to fail for good because its lease has expired. A row that
-- is locked by the open transaction of a reporting consumer is skipped, and its dispatches are left for later.
-- Dispatches are found first, as an array: in a join the planner may read the index of actions from end to end.
-- $1 timestamptz: now; $2 int: at most this many; $3 uuid[]: only these dispatches, or NULL
SELECT p.action_id
  FROM recur_internal.progress AS p
 WHERE p.action_id = ANY (ARRAY(SELECT l.action_id
                                  FROM recur_internal.live_dispatches AS l
                                 WHERE l.status = 'running' AND l.lease_expires_at <= $1
                                   AND NOT l.cancel_requested AND l.attempt - l.releases >= l.max_attempts
                                   AND ($3 IS NULL OR l.id = ANY ($3))))
 ORDER BY p.action_id
 LIMIT $2
   FOR UPDATE SKIP LOCKED
