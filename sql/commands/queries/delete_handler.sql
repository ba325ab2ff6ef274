-- $1 int: owner; $2 text: pattern
DELETE FROM recur_internal.handlers AS h WHERE h.owner_id = $1 AND h.pattern = $2
