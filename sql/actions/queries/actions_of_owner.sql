-- The actions of an owner, in the order in which others lock several of them.
-- $1 int: owner
SELECT d.id FROM recur_internal.definitions AS d WHERE d.owner_id = $1 ORDER BY d.created_at, d.id
