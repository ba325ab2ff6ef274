-- $1 uuid[]: actions; $2 timestamptz[]: when to look again; $3, $4, $5 timestamptz[]: since when each alarm's cause
-- lasts, NULL where it is not raised
UPDATE recur_internal.alarms AS a
   SET look_at = u.look_at, late_since = u.late_since, overrunning_since = u.overrunning_since,
       silent_since = u.silent_since
  FROM unnest($1, $2, $3, $4, $5) AS u (action_id, look_at, late_since, overrunning_since, silent_since)
 WHERE a.action_id = u.action_id
