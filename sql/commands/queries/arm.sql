-- Lets the SQL of an owner run.
-- $1 int: owner; $2 oid: role; $3 text: who arms it
INSERT INTO recur_internal.armed_owners (owner_id, role, armed_by) VALUES ($1, $2, $3)
    ON CONFLICT (owner_id) DO UPDATE
   SET role = EXCLUDED.role, armed_by = EXCLUDED.armed_by, armed_at = EXCLUDED.armed_at
