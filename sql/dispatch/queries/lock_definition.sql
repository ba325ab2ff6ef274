-- Keeps an action from being deleted until this transaction ends: the delete waits, and then finds the new dispatch.
-- $1 uuid: action; $2 int[]: owners that the caller sees, NULL for all
SELECT d.owner_id, d.record_events, d.late_after IS NOT NULL OR d.max_runtime IS NOT NULL, d.provider
  FROM recur_internal.definitions AS d
 WHERE d.id = $1 AND ($2 IS NULL OR d.owner_id = ANY ($2))
   FOR KEY SHARE
