-- Records errors on the timers of actions that could not be dispatched. The pause before the next try doubles, up to an
-- hour, and next_run_at stays: that occurrence is still to be dispatched. An action that fails too often is paused;
-- missed_from lets recur.resume record the occurrences that the pause skipped.
-- {recipient} is alerts/queries/recipient_columns.sql.
-- $1 uuid[]: actions; $2 text[]: what went wrong; $3 timestamptz: now; $4 int: errors in a row that pause an action, 0
-- for never
UPDATE recur_internal.timers AS t
   SET error_count   = t.error_count + 1,
       last_error    = u.message,
       last_error_at = $3,
       due_at        = CASE WHEN gives_up THEN NULL
                            ELSE $3 + least(interval '1 minute' * power(2, least(t.error_count, 6)),
                                            interval '1 hour') END,
       next_run_at   = CASE WHEN NOT gives_up THEN t.next_run_at END,
       missed_from   = CASE WHEN gives_up THEN t.next_run_at ELSE t.missed_from END,
       enabled       = NOT gives_up,
       paused_reason = CASE WHEN gives_up THEN format('%s errors in a row, the last: %s', t.error_count + 1, u.message)
                            ELSE t.paused_reason END
  FROM unnest($1, $2) AS u (action_id, message)
  JOIN recur_internal.timers AS o ON o.action_id = u.action_id
  JOIN recur_internal.definitions AS d ON d.id = u.action_id
  JOIN recur_internal.progress AS p ON p.action_id = u.action_id,
       LATERAL (SELECT $4 > 0 AND o.error_count + 1 >= $4 AS gives_up) AS limits
 WHERE t.action_id = u.action_id
RETURNING {{recipient}}, t.error_count, NOT t.enabled, coalesce(t.next_run_at, t.missed_from)
