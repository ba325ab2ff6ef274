-- How many dispatches of an owner are pending, counted up to a limit. Those that one dispatch became for several
-- endpoints do not count.
-- $1 int: owner; $2 bigint: count no further
SELECT count(*)
  FROM (SELECT FROM recur_internal.live_dispatches AS l
         WHERE l.owner_id = $1 AND l.status = 'pending' AND l.parent_id IS NULL LIMIT $2) AS pending
