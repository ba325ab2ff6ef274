-- What an action does beside its unfinished dispatches, and whether its dispatches have keys.
-- $1 uuid: action; $2 int[]: owners that the caller sees, NULL for all
SELECT d.name, d.overlap, d.dedup_key IS NOT NULL FROM recur_internal.definitions AS d
 WHERE d.id = $1 AND ($2 IS NULL OR d.owner_id = ANY ($2))
