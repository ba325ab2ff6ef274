-- $1 interval: how long history is kept; $2 timestamptz: now
SELECT recur_internal.next_partition($1, $2)
