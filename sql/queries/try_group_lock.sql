-- $1 text: a lock group
SELECT pg_catalog.pg_try_advisory_xact_lock(
           pg_catalog.hashtextextended($1, 'recur.live_dispatches'::pg_catalog.regclass::pg_catalog.oid::pg_catalog.int8))
