-- $1 uuid: action
SELECT p.action_id FROM recur_internal.progress AS p WHERE p.action_id = $1 FOR UPDATE
