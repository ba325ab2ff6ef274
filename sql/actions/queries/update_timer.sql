-- $1 uuid: action; $2 boolean: enabled; $3 timestamptz: next run; $4 timestamptz: due at; $5 timestamptz: last run;
-- $6 bigint: runs; $7 int: errors; $8 text: reason of a pause; $9 text: reason of an end;
-- $10 timestamptz: first occurrence missed by a pause; $11 timestamptz: first dispatch ahead; $12 timestamptz: latest
-- occurrence that has come due, while there are some ahead; $13 boolean: true if paused by pause_all
UPDATE recur_internal.timers AS t
   SET enabled = $2, next_run_at = $3, due_at = $4, last_run_at = $5, run_count = $6, error_count = $7,
       paused_reason = $8, ended_reason = $9, missed_from = $10,
       next_ahead = $11, ran_at = $12, paused_in_bulk = $13
 WHERE t.action_id = $1
