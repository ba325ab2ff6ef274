-- $1 uuid: action; $2 int: owner
UPDATE recur_internal.definitions AS d
   SET owner_id = $2, duplicate = false, updated_at = greatest(recur.clock(), d.updated_at + interval '1 microsecond')
 WHERE d.id = $1
