-- Locks the timer of an action that the caller sees: every session that changes or dispatches an action holds this
-- lock.
-- $1 uuid: action; $2 int[]: owners that the caller sees, NULL for all
SELECT t.action_id FROM recur_internal.timers AS t
 WHERE t.action_id = $1
   AND EXISTS (SELECT FROM recur_internal.definitions AS d
                WHERE d.id = t.action_id AND ($2 IS NULL OR d.owner_id = ANY ($2)))
   FOR UPDATE
