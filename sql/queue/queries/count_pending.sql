-- How many dispatches of an owner are pending, counted up to a limit.
-- $1 int: owner; $2 bigint: count no further
SELECT count(*)
  FROM (SELECT FROM recur_internal.live_dispatches AS l
         WHERE l.owner_id = $1 AND l.status = 'pending' LIMIT $2) AS pending
