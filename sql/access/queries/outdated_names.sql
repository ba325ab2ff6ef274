-- A row for each owner and level whose role has been renamed.
SELECT 1
  FROM recur_internal.owners AS o
  JOIN pg_catalog.pg_roles AS r ON r.oid = o.role
 WHERE r.rolname <> o.name
UNION ALL
SELECT 1
  FROM recur_internal.levels AS l
  JOIN pg_catalog.pg_roles AS r ON r.oid = l.role
 WHERE r.rolname <> l.name
 LIMIT 1
