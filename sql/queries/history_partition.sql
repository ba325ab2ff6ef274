-- The partition that history is written to.
SELECT h.partition FROM recur.history_turns AS h ORDER BY h.opened_at DESC LIMIT 1
