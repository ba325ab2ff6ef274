-- Is there something of an owner that the database would run: actions, handlers, dispatches, also finished ones, which
-- recur.retry brings back?
-- $1 int: owner
SELECT EXISTS (SELECT FROM recur_internal.handlers AS h WHERE h.owner_id = $1)
    OR EXISTS (SELECT FROM recur_internal.definitions AS d WHERE d.owner_id = $1 AND d.provider = 'sql')
    OR EXISTS (SELECT FROM recur_internal.live_dispatches AS l WHERE l.owner_id = $1 AND l.provider = 'sql')
    OR EXISTS (SELECT FROM recur_internal.finished_dispatches AS f WHERE f.owner_id = $1 AND f.in_database)
