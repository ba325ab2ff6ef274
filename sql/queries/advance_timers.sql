-- $1 uuid[]: actions; $2 timestamptz[]: occurrence that fired, or NULL; $3 timestamptz[]: next, or NULL;
-- $4 text[]: why the action ended, or NULL
UPDATE recur.timers AS t
   SET next_run_at  = u.next_run_at,
       enabled      = u.ended_reason IS NULL,
       ended_reason = u.ended_reason,
       last_run_at  = coalesce(u.fired, t.last_run_at),
       run_count    = t.run_count + (u.fired IS NOT NULL)::int
  FROM unnest($1, $2, $3, $4) AS u (action_id, fired, next_run_at, ended_reason)
 WHERE t.action_id = u.action_id
