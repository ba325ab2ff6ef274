-- Notes a dispatched occurrence, if it is later than the last run.
-- $1 uuid: action; $2 timestamptz: an occurrence that was dispatched
UPDATE recur_internal.timers AS t
   SET last_run_at = greatest(t.last_run_at, $2),
       ran_at      = CASE WHEN t.next_ahead IS NOT NULL THEN greatest(t.ran_at, $2) END
 WHERE t.action_id = $1
