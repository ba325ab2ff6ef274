-- $1 timestamptz: now; $2 int: how many at the most
SELECT recur._expire_leases($1, $2)
