-- The journeys of a name that the caller sees, the caller's own first.
-- $1 text: name; $2 text: version, NULL for any; $3 int[]: owners that the caller is; $4 int[]: owners that the caller
-- sees, NULL for all; $5 int: how many at most
SELECT j.owner_id, j.version, j.owner_id = ANY ($3), recur_internal.owner_name(j.owner_id)
  FROM recur_internal.journeys AS j
 WHERE j.name = $1 AND ($2 IS NULL OR j.version = $2) AND ($4 IS NULL OR j.owner_id = ANY ($4))
 ORDER BY j.owner_id = ANY ($3) DESC, j.owner_id, j.created_at, j.version
 LIMIT $5
