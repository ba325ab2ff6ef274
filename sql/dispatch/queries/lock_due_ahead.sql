-- Timers that will be due, locked for this transaction, from where the last batch ended: a timer that was left to its
-- instant stays in place and must not be locked again. The index orders timers of one instant by their tid. A timer
-- whose tid has changed meanwhile may be missed, and is dispatched at its instant.
-- $1 timestamptz, $2 tid: after this timer; $3 timestamptz: up to; $4 bigint: at most this many
SELECT t.action_id, t.due_at, coalesce(t.next_run_at, t.due_at), t.last_run_at, t.run_count, t.ctid,
       t.next_ahead, t.ran_at, t.next_run_at IS NULL AND coalesce(t.next_ahead, t.ran_at) IS NOT NULL, t.error_count
  FROM recur_internal.timers AS t
 WHERE t.due_at >= $1 AND t.due_at <= $3 AND (t.due_at > $1 OR t.ctid > $2)
 ORDER BY t.due_at
 LIMIT $4
   FOR UPDATE SKIP LOCKED
