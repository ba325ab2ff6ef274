-- What this database decides for itself. A restore may have brought any number of rows.
SELECT s.namespace, s.name, s.value FROM recur_internal.settings AS s ORDER BY s.name, s.namespace LIMIT 10000
