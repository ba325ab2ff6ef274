-- Ends actions whose timers the caller has locked, if they still have had all of their completed runs: max_runs may
-- have been raised before the lock.
-- $1 uuid[]: actions
UPDATE recur_internal.timers AS t
   SET enabled = false, ended_reason = '{{reason}}', next_run_at = NULL, due_at = NULL, next_ahead = NULL, ran_at = NULL
  FROM recur_internal.progress AS p
 WHERE t.action_id = ANY ($1) AND p.action_id = t.action_id AND p.completed_count >= p.max_completed
RETURNING t.action_id
