-- When the n-th timer between two instants is due.
-- $1 timestamptz: after; $2 timestamptz: up to; $3 bigint: n - 1
SELECT t.due_at FROM recur_internal.timers AS t
 WHERE t.due_at > $1 AND t.due_at <= $2
 ORDER BY t.due_at OFFSET $3 LIMIT 1
