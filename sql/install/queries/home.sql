-- Where this database is at home. A restore may have brought any number of rows.
SELECT h.cluster, h.database, h.site, h.move_until FROM recur_internal.home AS h LIMIT 100
