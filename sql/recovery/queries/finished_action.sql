-- The action of a dispatch that can be retried.
-- $1 uuid: dispatch; $2 int[]: owners that the caller sees, NULL for all
SELECT f.action_id FROM recur_internal.finished_dispatches AS f
 WHERE f.id = $1 AND f.status IN ('failed', 'cancelled') AND ($2 IS NULL OR f.owner_id = ANY ($2))
