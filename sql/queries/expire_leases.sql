-- $1 timestamptz: now; $2 int: how many at the most; $3 uuid[]: only these, or NULL
SELECT recur._expire_leases($1, $2, $3)
