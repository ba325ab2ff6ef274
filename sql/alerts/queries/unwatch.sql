-- $1 uuid: action
DELETE FROM recur_internal.alarms AS a WHERE a.action_id = $1
