-- The oldest of the actions that were added beside the holder of an identity. {subject} as in find_holder.sql.
-- $1 text: name; $2 text: namespace; $3 text: tenant; $4 int: owner; $5 text: subject
SELECT d.id FROM recur_internal.definitions AS d
 WHERE d.name = $1 AND d.namespace = $2 AND d.tenant = $3 AND d.owner_id = $4 AND {{subject}} AND d.duplicate
 ORDER BY d.created_at, d.id
 LIMIT 1
