-- The states in which schedules of a journey start: how many schedules each has, and the ids of some.
-- $1 int: owner; $2 text: name; $3 text: version; $4 int: how many ids at most
SELECT s.start_state, s.number,
       (SELECT string_agg(l.id::text, ', ' ORDER BY l.id)
          FROM (SELECT d.id FROM recur_internal.definitions AS d
                 WHERE d.owner_id = $1 AND d.journey = $2 AND d.journey_version = $3 AND d.start_state = s.start_state
                 ORDER BY d.id LIMIT $4) AS l)
  FROM (SELECT d.start_state, count(*) AS number FROM recur_internal.definitions AS d
         WHERE d.owner_id = $1 AND d.journey = $2 AND d.journey_version = $3
         GROUP BY d.start_state) AS s
 ORDER BY s.start_state
