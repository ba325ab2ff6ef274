-- What the database has run.

-- A result may be any JSON: a handler returns it, or a consumer that has asked for the provider.
CREATE FUNCTION recur_internal.number_in(value jsonb) RETURNS numeric
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$ SELECT CASE WHEN jsonb_typeof(value) = 'number' AND value::numeric BETWEEN 0 AND 1e11 THEN value::numeric END $$;
COMMENT ON FUNCTION recur_internal.number_in IS 'Internal: the number that a JSON value is; NULL if it is none';

CREATE VIEW recur.runs AS
SELECT coalesce(d.name, d.action_type) AS action, d.started_at AS began,
       CASE WHEN d.status = 'running' THEN clock_timestamp() - d.started_at
            ELSE coalesce(recur_internal.number_in(d.result -> 'duration_ms')::float8 * interval '1 ms',
                          d.finished_at - d.started_at) END AS duration,
       CASE WHEN d.status = 'pending' THEN 'retrying' ELSE d.status END AS outcome,
       coalesce(recur_internal.number_in(d.result -> 'row_count')::bigint,
                (SELECT sum(recur_internal.number_in(c.command -> 'rows'))::bigint
                   FROM jsonb_array_elements(CASE jsonb_typeof(d.result -> 'commands')
                                                  WHEN 'array' THEN d.result -> 'commands' END) AS c (command))
               ) AS rows,
       CASE WHEN d.status = 'completed' THEN d.result #>> '{messages,0,text}'
            ELSE coalesce(split_part(d.error, E'\n', 1), d.result #>> '{messages,0,text}') END AS message,
       d.attempt, d.owner, d.id AS dispatch_id, d.action_id
  FROM recur.dispatches AS d
 WHERE d.in_database AND d.attempt > 0;
COMMENT ON VIEW recur.runs IS
    'What the database itself has run, of SQL actions and handlers: one row for each dispatch, with its latest attempt';
COMMENT ON COLUMN recur.runs.action IS 'The name of the action, or what an enqueued dispatch is called';
COMMENT ON COLUMN recur.runs.began IS 'When the latest attempt was claimed';
COMMENT ON COLUMN recur.runs.duration IS 'How long the run took; while it runs, how long it has been running';
COMMENT ON COLUMN recur.runs.outcome IS 'running, completed, failed, cancelled, or retrying: failed, to be tried again';
COMMENT ON COLUMN recur.runs.rows IS 'Rows of the last result, or else those that the statements concerned';
COMMENT ON COLUMN recur.runs.message IS 'What went wrong, or else the first message of the run';
COMMENT ON COLUMN recur.runs.attempt IS 'The number of the latest attempt';
COMMENT ON COLUMN recur.runs.owner IS 'As whom it ran';
COMMENT ON COLUMN recur.runs.dispatch_id IS 'The dispatch; recur.history shows all that is known of it';
COMMENT ON COLUMN recur.runs.action_id IS 'The action; NULL for an enqueued dispatch';

CREATE FUNCTION recur_internal.interrupted_runs(OUT pid int, OUT dispatch_id uuid, OUT since timestamptz)
    RETURNS SETOF record
    LANGUAGE c VOLATILE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'interrupted_runs_wrapper';
COMMENT ON FUNCTION recur_internal.interrupted_runs IS
    'Internal: runs of this database that were asked to stop, or whose time is over, and since when';

CREATE FUNCTION recur_internal.executor_slots() RETURNS int
    LANGUAGE c VOLATILE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'executor_slots_wrapper';
COMMENT ON FUNCTION recur_internal.executor_slots IS
    'Internal: how many executors this database may have, by its setting and by the slots of the server';

-- Why something that the database itself is to run does not run.
CREATE VIEW recur_internal.execution_trouble AS
SELECT 'error' AS severity,
       format('the SQL of role "%s" does not run: it was restored, or inserted by hand', o.name) AS finding,
       format('Look through recur.recurring_actions, recur.dispatches and recur.handlers; then '
              'SELECT recur.arm_sql(%L) as a role that may SET ROLE to it.', o.name) AS remedy
  FROM recur_internal.owners AS o
 WHERE NOT EXISTS (SELECT FROM recur_internal.armed_owners AS a WHERE a.owner_id = o.id)
   AND EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = o.role)
   AND (EXISTS (SELECT FROM recur_internal.handlers AS h WHERE h.owner_id = o.id)
        OR EXISTS (SELECT FROM recur_internal.live_dispatches AS l
                    WHERE l.owner_id = o.id AND l.in_database AND l.status <> 'running')
        OR EXISTS (SELECT FROM recur_internal.definitions AS d
                     JOIN recur_internal.timers AS t ON t.action_id = d.id
                    WHERE d.owner_id = o.id AND d.provider = 'sql' AND t.enabled))
UNION ALL
SELECT 'error', format('role "%s" can not connect, so that its SQL does not run', r.rolname),
       CASE WHEN has_database_privilege(r.oid, current_database(), 'CONNECT')
            THEN format('ALTER ROLE %I LOGIN; PostgreSQL 17 needs no LOGIN.', r.rolname)
            ELSE format('GRANT CONNECT ON DATABASE %I TO %I;', current_database(), r.rolname) END
  FROM recur_internal.armed_owners AS a
  JOIN pg_roles AS r ON r.oid = a.role
 WHERE NOT has_database_privilege(r.oid, current_database(), 'CONNECT')
    OR (NOT r.rolcanlogin AND current_setting('server_version_num')::int < 170000)
UNION ALL
SELECT 'error', format('the handler %s of action type "%s" does not exist', h.function, h.pattern),
       format('Create the function again, or SELECT recur.drop_handler(%L, %L).', h.pattern, o.name)
  FROM recur_internal.handlers AS h
  JOIN recur_internal.owners AS o ON o.id = h.owner_id
 WHERE to_regprocedure(h.function) IS NULL
UNION ALL
SELECT 'warning',
       format('%s dispatches wait for an executor, the oldest since %s', count(*), min(l.available_at)),
       CASE recur_internal.executor_slots()
            WHEN 0 THEN 'recur.executors is 0: set it to the number of processes that may run SQL at once.'
            ELSE format('At most %s run at once: raise recur.executors, and max_worker_processes with it. '
                        'recur.workers shows what the executors do.', recur_internal.executor_slots()) END
  FROM recur_internal.live_dispatches AS l
  JOIN recur_internal.armed_owners AS a ON a.owner_id = l.owner_id
 WHERE l.in_database AND l.status <> 'running' AND l.available_at < clock_timestamp() - interval '1 minute'
HAVING count(*) > 0
UNION ALL
SELECT 'warning',
       format('dispatch %s should have stopped at %s and still runs, in process %s', i.dispatch_id, i.since, i.pid),
       format('Its code does not react to cancellation. pg_terminate_backend(%s) ends the process, if anything does.',
              i.pid)
  FROM recur_internal.interrupted_runs() AS i
 WHERE i.since < clock_timestamp() - interval '10 seconds';
COMMENT ON VIEW recur_internal.execution_trouble IS
    'Internal: what recur.doctor says of SQL actions and handlers that do not run';
COMMENT ON COLUMN recur_internal.execution_trouble.severity IS 'error or warning';
COMMENT ON COLUMN recur_internal.execution_trouble.finding IS 'What is wrong';
COMMENT ON COLUMN recur_internal.execution_trouble.remedy IS 'What to do about it';
