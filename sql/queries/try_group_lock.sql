-- One lock of 1,024 for each group: the server's lock table has room for some thousands, of all sessions together, and a claim may
-- meet more groups than that. Two groups that share one are not in each other's way within one claim.
-- $1 text: a lock group
SELECT pg_catalog.pg_try_advisory_xact_lock(
           ('recur.live_dispatches'::pg_catalog.regclass::pg_catalog.oid::pg_catalog.int8 << 32)
           | (pg_catalog.hashtextextended($1, 0) & 1023))
