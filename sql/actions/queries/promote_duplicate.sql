-- $1 uuid: action
UPDATE recur_internal.definitions AS d SET duplicate = false WHERE d.id = $1 AND d.duplicate
