-- The partition that history is written to.
SELECT h.partition FROM recur_internal.history_partitions AS h ORDER BY h.opened_at DESC LIMIT 1
