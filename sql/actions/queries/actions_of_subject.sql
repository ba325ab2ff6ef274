-- The actions of a subject, in the order in which others lock several of them.
-- $1 text: subject; $2 text: namespace; $3 text: tenant; $4 int[]: owners that the caller sees; each NULL for all
SELECT d.id FROM recur_internal.definitions AS d
 WHERE d.subject = $1 AND ($2 IS NULL OR d.namespace = $2) AND ($3 IS NULL OR d.tenant = $3)
   AND ($4 IS NULL OR d.owner_id = ANY ($4))
 ORDER BY d.created_at, d.id
