-- Advances timers after their occurrences were decided. {key} finds a timer by its tid, if this transaction has locked
-- it, or by its action.
-- $1 tid[] or uuid[]: timers; $2 int[]: dispatches of each; $3 timestamptz[]: the latest occurrence among them, or
-- NULL; $4 timestamptz[]: next occurrence, or NULL; $5 timestamptz[]: when to look again; $6 text[]: why the action
-- ended, or NULL; $7 timestamptz[]: the first dispatch ahead of its time, or NULL; $8 timestamptz[]: the latest
-- occurrence that has come due, where some are ahead
UPDATE recur_internal.timers AS t
   SET next_run_at  = u.next_run_at,
       due_at       = u.due_at,
       enabled      = u.ended_reason IS NULL,
       ended_reason = u.ended_reason,
       last_run_at  = greatest(u.fired, t.last_run_at),
       next_ahead   = u.next_ahead,
       ran_at       = u.ran_at,
       run_count    = t.run_count + u.runs,
       error_count  = 0
  FROM unnest($1, $2, $3, $4, $5, $6, $7, $8)
       AS u (key, runs, fired, next_run_at, due_at, ended_reason, next_ahead, ran_at)
 WHERE {{key}}
