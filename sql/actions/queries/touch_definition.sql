-- $1 uuid: action; $2 timestamptz: now
UPDATE recur_internal.definitions AS d SET updated_at = $2 WHERE d.id = $1
