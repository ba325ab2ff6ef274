-- $1 interval: how long history is kept; $2 timestamptz: now
SELECT recur_internal.open_next_partition($1, $2)
