-- $1 uuid: action; $2 int: the number of completed runs after which it ends, or NULL
UPDATE recur_internal.progress AS p SET max_completed = $2 WHERE p.action_id = $1
