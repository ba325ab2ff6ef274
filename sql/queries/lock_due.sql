-- The due timers, locked for this transaction. On the bare table: a join or a CTE here would lock the wrong
-- rows, or none.
-- $1 timestamptz: now; $2 bigint: how many at the most
SELECT t.action_id, t.next_run_at, t.run_count
  FROM recur.timers AS t
 WHERE t.next_run_at <= $1
 ORDER BY t.next_run_at
 LIMIT $2
   FOR UPDATE SKIP LOCKED
