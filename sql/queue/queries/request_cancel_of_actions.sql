-- Asks the running dispatches of actions to stop. A dispatch whose consumer reports at this moment is skipped. "Not
-- pending" as in finish.sql.
-- $1 uuid[]: actions
UPDATE recur_internal.live_dispatches AS l
   SET cancel_requested = true, updated_at = recur.clock()
 WHERE l.id IN (SELECT r.id FROM recur_internal.live_dispatches AS r
                 WHERE r.action_id = ANY ($1) AND r.status <> 'pending' AND NOT r.cancel_requested
                   FOR UPDATE SKIP LOCKED)
