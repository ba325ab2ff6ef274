-- When the so-and-so-many-th timer of a stretch of time is due.
-- $1 timestamptz: after; $2 timestamptz: up to; $3 bigint: how many come before it
SELECT t.due_at FROM recur.timers AS t WHERE t.due_at > $1 AND t.due_at <= $2 ORDER BY t.due_at OFFSET $3 LIMIT 1
