-- The owners whose SQL runs.
SELECT a.owner_id, a.role FROM recur_internal.armed_owners AS a ORDER BY a.owner_id
