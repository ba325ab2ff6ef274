-- Locks the pending dispatches of an action, in the order of their ids. The status is asked for with CASE, because the
-- planner may take an index of pending dispatches, read from end to end, for shorter than the index of actions.
-- $1 uuid: action
SELECT l.id FROM recur_internal.live_dispatches AS l
 WHERE l.action_id = $1 AND CASE l.status WHEN 'pending' THEN true END
 ORDER BY l.id
   FOR UPDATE
