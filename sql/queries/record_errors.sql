-- Actions that could not be evaluated: the error stays on the row, and the next try is later and later, an hour at
-- the most.
-- $1 uuid[]: actions; $2 text[]: what went wrong; $3 timestamptz: now
UPDATE recur.timers AS t
   SET error_count   = t.error_count + 1,
       last_error    = u.message,
       last_error_at = $3,
       next_run_at   = $3 + least(interval '1 minute' * power(2, least(t.error_count, 6)), interval '1 hour')
  FROM unnest($1, $2) AS u (action_id, message)
 WHERE t.action_id = u.action_id
