-- The due timers, locked for this transaction. From the table alone: with a join or a CTE, other rows than those of the
-- limit would be locked. The low-water mark lets the scan skip the dead index entries of timers that were advanced,
-- which stay while a snapshot is held open.
-- $1 timestamptz: low-water mark, no timer is due before; $2 timestamptz: now; $3 bigint: at most this many
SELECT t.action_id, t.due_at, coalesce(t.next_run_at, t.due_at), t.last_run_at, t.run_count, t.ctid,
       t.next_ahead, t.ran_at, t.next_run_at IS NULL AND coalesce(t.next_ahead, t.ran_at) IS NOT NULL, t.error_count
  FROM recur_internal.timers AS t
 WHERE t.due_at >= $1 AND t.due_at <= $2
 ORDER BY t.due_at
 LIMIT $3
   FOR UPDATE SKIP LOCKED
