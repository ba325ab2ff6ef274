-- The next instant at which anything is due.
SELECT t.next_run_at FROM recur.timers AS t WHERE t.next_run_at IS NOT NULL ORDER BY t.next_run_at LIMIT 1
