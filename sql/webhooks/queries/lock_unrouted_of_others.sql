-- Owners that have webhooks without an endpoint, and of each some that are due, locked, the oldest first. The index is
-- entered once for each owner, however much it has. {unrouted} is unrouted.sql.
-- $1 timestamptz: now; $2 int: the owner to begin behind; $3 int: at most this many owners; $4 int[]: owners of whom
-- nothing is taken; $5 int: at most this many of each
WITH RECURSIVE seen AS (
    (SELECT l.owner_id, 1 AS number FROM recur_internal.live_dispatches AS l
      WHERE {{unrouted}} AND l.owner_id > $2
      ORDER BY l.owner_id LIMIT 1)
    UNION ALL
    SELECT n.owner_id, s.number + 1
      FROM seen AS s
     CROSS JOIN LATERAL (
        SELECT l.owner_id FROM recur_internal.live_dispatches AS l
         WHERE {{unrouted}} AND l.owner_id > s.owner_id
         ORDER BY l.owner_id LIMIT 1) AS n
     WHERE s.number < $3
)
SELECT w.id, o.owner_id, w.action_type
  FROM seen AS o
  LEFT JOIN LATERAL (
    SELECT l.id, l.action_type
      FROM recur_internal.live_dispatches AS l
     WHERE {{unrouted}} AND l.owner_id = o.owner_id AND l.owner_id <> ALL ($4) AND l.available_at <= $1
     ORDER BY l.available_at
     LIMIT $5
       FOR UPDATE SKIP LOCKED) AS w ON true
