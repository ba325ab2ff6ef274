-- Is there something of an owner that the database would run: actions, handlers, dispatches, also finished ones, which
-- recur.retry brings back? Where rows were inserted by hand, any row of the owner may be such a one: a handler that is
-- set later would run it.
-- $1 int: owner
SELECT EXISTS (SELECT FROM recur_internal.handlers AS h WHERE h.owner_id = $1)
    OR EXISTS (SELECT FROM recur_internal.definitions AS d WHERE d.owner_id = $1 AND (d.provider = 'sql' OR hand.wrote))
    OR EXISTS (SELECT FROM recur_internal.live_dispatches AS l
                WHERE l.owner_id = $1 AND (l.provider = 'sql' OR hand.wrote))
    OR EXISTS (SELECT FROM recur_internal.finished_dispatches AS f
                WHERE f.owner_id = $1 AND (f.in_database OR f.provider = 'sql'))
    OR (hand.wrote AND EXISTS (SELECT FROM recur_internal.finished_dispatches AS f WHERE f.owner_id = $1))
  FROM (SELECT EXISTS (SELECT FROM recur_internal.armed_owners AS a WHERE a.owner_id = 0) AS wrote) AS hand
