-- $1 timestamptz: now
INSERT INTO recur_internal.history_partitions (partition, opened_at)
SELECT 0, $1 WHERE NOT EXISTS (SELECT FROM recur_internal.history_partitions)
