-- Marks the pending dispatches of an owner that the database runs now: a handler was set or dropped. What
-- is bound to an endpoint is delivered there.
-- $1 int: owner
UPDATE recur_internal.live_dispatches AS l
   SET in_database = recur_internal.runs_in_database(l.owner_id, l.provider, l.action_type)
 WHERE l.owner_id = $1 AND l.status = 'pending' AND l.endpoint IS NULL
   AND l.in_database IS DISTINCT FROM recur_internal.runs_in_database(l.owner_id, l.provider, l.action_type)
