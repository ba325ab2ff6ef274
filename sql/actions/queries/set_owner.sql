-- $1 uuid: action; $2 int: owner
UPDATE recur_internal.definitions AS d
   SET owner_id = $2, duplicate = false, updated_at = recur.clock()
 WHERE d.id = $1
