-- Owners whose role was renamed get its name, which dumps show.
UPDATE recur_internal.owners AS o SET name = r.rolname
  FROM pg_catalog.pg_roles AS r WHERE r.oid = o.role AND r.rolname <> o.name
