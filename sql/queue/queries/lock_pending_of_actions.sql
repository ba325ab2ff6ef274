-- Locks the pending dispatches of actions, in the order of their ids. {skip} is SKIP LOCKED where the caller must
-- wait for no lock.
-- $1 uuid[]: actions
SELECT l.id FROM recur_internal.live_dispatches AS l
 WHERE l.action_id = ANY ($1) AND l.status = 'pending'
 ORDER BY l.id
   FOR UPDATE {{skip}}
