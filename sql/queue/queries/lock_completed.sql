-- Locks the timers of actions that have had their last run, except for those that are locked elsewhere.
-- $1 uuid[]: actions
SELECT t.action_id FROM recur_internal.timers AS t
 WHERE t.action_id = ANY ($1) AND t.enabled
 ORDER BY t.action_id
   FOR UPDATE SKIP LOCKED
