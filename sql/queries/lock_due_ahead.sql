-- Timers that will be due, locked for this transaction, from where the last batch ended: those that it left where they
-- were, because they have to be decided at their instant, are not locked again. Timers of one instant are in the index in
-- the order of their places. One whose place has changed meanwhile may be missed: it is dispatched at its instant.
-- $1 timestamptz, $2 tid: after the timer of that instant that was there; $3 timestamptz: up to; $4 bigint: how many at the
-- most
SELECT t.action_id, t.due_at, coalesce(t.next_run_at, t.due_at), t.last_run_at, t.run_count, t.ctid
  FROM recur.timers AS t
 WHERE t.due_at >= $1 AND t.due_at <= $3 AND (t.due_at > $1 OR t.ctid > $2)
 ORDER BY t.due_at
 LIMIT $4
   FOR UPDATE SKIP LOCKED
