-- Is a dispatch of the lock group running?
-- $1 text: lock group; $2 int: owner
SELECT l.id FROM recur_internal.live_dispatches AS l
 WHERE l.status = 'running' AND l.lock_group = $1 AND l.owner_id = $2
