-- Timer, progress and contexts go with the definition.
-- $1 uuid: action
DELETE FROM recur_internal.definitions AS d WHERE d.id = $1
