-- A dispatch was made by hand: its deadline may come before the next look.
-- $1 uuid: action; $2 timestamptz: now
UPDATE recur_internal.alarms AS a
   SET look_at = $2 + least(d.late_after, d.max_runtime)
  FROM recur_internal.definitions AS d
 WHERE d.id = $1 AND a.action_id = $1 AND a.look_at > $2 + least(d.late_after, d.max_runtime)
