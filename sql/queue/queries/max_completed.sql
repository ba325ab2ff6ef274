-- The number of completed runs that an action may have, if it counts them.
-- $1 uuid: action; $2 int[]: owners that the caller sees, NULL for all
SELECT d.max_runs FROM recur_internal.definitions AS d
 WHERE d.id = $1 AND d.count_runs = 'completed' AND ($2 IS NULL OR d.owner_id = ANY ($2))
