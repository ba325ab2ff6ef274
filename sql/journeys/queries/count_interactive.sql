-- Counts a run that met an interactive state, in the progress of its action.
-- $1 uuid: action
UPDATE recur_internal.progress AS p SET interactive_count = p.interactive_count + 1 WHERE p.action_id = $1
