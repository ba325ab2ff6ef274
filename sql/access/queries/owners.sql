-- All owners.
SELECT o.id, o.role, o.name FROM recur_internal.owners AS o ORDER BY o.id
