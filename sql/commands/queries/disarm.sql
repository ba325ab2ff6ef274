-- Lets no SQL of these owners run.
-- $1 int[]: owners
DELETE FROM recur_internal.armed_owners AS a WHERE a.owner_id = ANY ($1)
