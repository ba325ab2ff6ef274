-- The owners whose SQL runs.
SELECT a.owner_id, a.role FROM recur_internal.armed_owners AS a WHERE a.owner_id > 0 ORDER BY a.owner_id
