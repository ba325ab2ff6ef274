-- $1 timestamptz: now; $2 int: at most this many
SELECT a.action_id
  FROM recur_internal.alarms AS a
 WHERE a.look_at <= $1
 ORDER BY a.look_at
 LIMIT $2
   FOR UPDATE SKIP LOCKED
