-- The next instant at which anything is due.
-- $1 timestamptz: nothing is due before
SELECT t.due_at FROM recur.timers AS t WHERE t.due_at >= $1 ORDER BY t.due_at LIMIT 1
