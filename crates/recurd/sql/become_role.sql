-- Becomes a role until the transaction ends; no row where it does not exist or is a superuser.
-- $1 the role
SELECT pg_catalog.set_config('role', r.rolname, true)
  FROM pg_catalog.pg_roles AS r
 WHERE r.rolname = $1 AND NOT r.rolsuper
