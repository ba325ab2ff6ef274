-- Replaces all rows by one, or by none.
-- $1 boolean: one; $2 bigint: cluster; $3 oid: database; $4 text: site
WITH old AS (DELETE FROM recur_internal.home)
INSERT INTO recur_internal.home (cluster, database, site) SELECT $2, $3, $4 WHERE $1
