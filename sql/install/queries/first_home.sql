-- The first write of a database, unless a restore has written before.
-- $1 bigint: cluster; $2 oid: database; $3 text: site
INSERT INTO recur_internal.home (cluster, database, site)
SELECT $1, $2, $3
 WHERE NOT EXISTS (SELECT FROM recur_internal.home) AND NOT EXISTS (SELECT FROM recur_internal.definitions)
   AND NOT EXISTS (SELECT FROM recur_internal.timers) AND NOT EXISTS (SELECT FROM recur_internal.live_dispatches)
