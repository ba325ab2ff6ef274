-- How many timers are due at an instant. $1 timestamptz: the instant; $2 bigint: count no further
SELECT count(*) FROM (SELECT FROM recur_internal.timers AS t WHERE t.due_at = $1 LIMIT $2) AS herd
