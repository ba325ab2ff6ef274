-- The actions of a name that the caller sees, the caller's own first. {subject} as in find_holder.sql.
-- $1 text: name; $2 text: namespace; $3 text: tenant; $4 int[]: owners that the caller is; $5 text: subject;
-- $6 int[]: owners that the caller sees, NULL for all; $7 int: how many at most
SELECT d.id, d.owner_id = ANY ($4), recur_internal.owner_name(d.owner_id)
  FROM recur_internal.definitions AS d
 WHERE d.name = $1 AND d.namespace = $2 AND d.tenant = $3 AND {{subject}} AND NOT d.duplicate
   AND ($6 IS NULL OR d.owner_id = ANY ($6))
 ORDER BY d.owner_id = ANY ($4) DESC, d.owner_id
 LIMIT $7
