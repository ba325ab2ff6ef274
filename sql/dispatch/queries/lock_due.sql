-- The due timers, locked for this transaction. On the bare table: a join or a CTE here would lock the wrong rows, or
-- none. The low-water mark keeps the scan away from the index entries that earlier advances have left behind, which
-- stay while a snapshot is held open.
-- $1 timestamptz: low-water mark, no timer is due before; $2 timestamptz: now; $3 bigint: at most this many
SELECT t.action_id, t.due_at, coalesce(t.next_run_at, t.due_at), t.last_run_at, t.run_count, t.ctid
  FROM recur_internal.timers AS t
 WHERE t.due_at >= $1 AND t.due_at <= $2
 ORDER BY t.due_at
 LIMIT $3
   FOR UPDATE SKIP LOCKED
