-- Levels whose role was renamed get its name, which dumps show.
UPDATE recur_internal.levels AS l SET name = r.rolname
  FROM pg_catalog.pg_roles AS r WHERE r.oid = l.role AND r.rolname <> l.name
