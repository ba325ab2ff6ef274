-- Is one of these relations a relation of the extension, or a view that reads one? Operators and names are qualified:
-- the query runs with the search_path of the session that it guards against.
-- $1 oid[]: relations
WITH RECURSIVE reached (relation) AS (
    SELECT pg_catalog.unnest($1)
     UNION
    SELECT d.refobjid
      FROM reached AS r
      JOIN pg_catalog.pg_rewrite AS w ON w.ev_class OPERATOR(pg_catalog.=) r.relation
      JOIN pg_catalog.pg_depend AS d ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_rewrite'::pg_catalog.regclass
                                    AND d.objid OPERATOR(pg_catalog.=) w.oid
                                    AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
)
SELECT c.oid
  FROM reached AS r
  JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) r.relation
  JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
 WHERE n.nspname OPERATOR(pg_catalog.=) 'recur' OR n.nspname OPERATOR(pg_catalog.=) 'recur_internal'
 LIMIT 1
