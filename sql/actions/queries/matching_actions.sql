-- The actions that pause_all or resume_all changes, as {state} says, in the order in which both lock them. An action
-- comes before those that were added beside it, as in a delete.
-- $1 text: namespace; $2 text: tenant; $3 jsonb: labels; $4 int[]: owners that the caller sees; each NULL for all
SELECT d.id
  FROM recur_internal.definitions AS d
  JOIN recur_internal.timers AS t ON t.action_id = d.id
 WHERE {{state}}
   AND ($1 IS NULL OR d.namespace = $1) AND ($2 IS NULL OR d.tenant = $2) AND ($3 IS NULL OR d.labels @> $3)
   AND ($4 IS NULL OR d.owner_id = ANY ($4))
 ORDER BY d.created_at, d.id
