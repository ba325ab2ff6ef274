-- The endpoints of a name that the caller sees, the caller's own first.
-- $1 text: name; $2 int[]: owners that the caller is; $3 int[]: owners that the caller sees, NULL for all; $4 text: the
-- name of the owner, or NULL; $5 int: how many at most
SELECT e.owner_id, e.owner_id = ANY ($2), recur_internal.owner_name(e.owner_id)
  FROM recur_internal.endpoints AS e
 WHERE e.name = $1 AND ($3 IS NULL OR e.owner_id = ANY ($3))
   AND ($4 IS NULL OR recur_internal.owner_name(e.owner_id) = $4)
 ORDER BY e.owner_id = ANY ($2) DESC, e.owner_id
 LIMIT $5
