-- Locks the timer of an action.
-- $1 uuid: action; $2 int[]: owners that the caller sees, NULL for all
SELECT t.next_run_at, t.run_count
  FROM recur_internal.timers AS t
  JOIN recur_internal.definitions AS d ON d.id = t.action_id
 WHERE t.action_id = $1 AND ($2 IS NULL OR d.owner_id = ANY ($2))
   FOR UPDATE OF t
