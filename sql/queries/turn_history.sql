-- $1 text: how long history is kept; $2 timestamptz: now
SELECT recur._turn_history($1::interval, $2)
