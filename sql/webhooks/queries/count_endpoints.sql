-- How many endpoints an owner has, counted up to a limit.
-- $1 int: owner; $2 bigint: count no further
SELECT count(*) FROM (SELECT FROM recur_internal.endpoints AS e WHERE e.owner_id = $1 LIMIT $2) AS endpoints
