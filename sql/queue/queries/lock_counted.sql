-- Locks the timer of an action, so that no other session makes a dispatch of it if max_runs counts completed runs.
-- $1 uuid: action
SELECT d.name, CASE WHEN d.count_runs = 'completed' THEN d.max_runs END
  FROM recur_internal.timers AS t
  JOIN recur_internal.definitions AS d ON d.id = t.action_id
 WHERE t.action_id = $1
   FOR UPDATE OF t
