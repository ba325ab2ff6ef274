-- How many keys an owner has, counted up to a limit.
-- $1 int: owner; $2 bigint: count no further
SELECT count(*) FROM (SELECT FROM recur_internal.request_keys AS k WHERE k.owner_id = $1 LIMIT $2) AS counted
