-- Statistics, workers and problems, for operators.

CREATE FUNCTION recur_internal.stats(
    OUT since timestamptz, OUT last_tick timestamptz, OUT batches bigint, OUT failed_batches bigint,
    OUT dispatched bigint, OUT skipped bigint, OUT ended bigint, OUT errors bigint, OUT leases_expired bigint,
    OUT interactive bigint,
    OUT alarms_raised bigint,
    OUT lateness_p50 float8, OUT lateness_p99 float8, OUT lateness_max float8
) RETURNS SETOF record
    LANGUAGE c VOLATILE ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'stats_wrapper';
COMMENT ON FUNCTION recur_internal.stats IS 'Internal: what recur.stats shows, lateness in milliseconds';

CREATE VIEW recur.stats AS
SELECT current_database() AS database, s.since, s.last_tick, s.batches, s.failed_batches, s.dispatched, s.skipped,
       s.ended, s.errors, s.leases_expired, s.interactive, s.alarms_raised,
       (SELECT count(*) FROM recur_internal.alarms AS a
         WHERE a.late_since IS NOT NULL OR a.overrunning_since IS NOT NULL OR a.silent_since IS NOT NULL) AS alarms_now,
       s.lateness_p50 AS lateness_p50_ms, s.lateness_p99 AS lateness_p99_ms,
       s.lateness_max AS lateness_max_ms
  FROM recur_internal.stats() AS s;
COMMENT ON VIEW recur.stats IS
    'What the dispatchers of this database have done since the server started; empty while nothing has happened';
COMMENT ON COLUMN recur.stats.database IS 'This database';
COMMENT ON COLUMN recur.stats.since IS 'When the counts began';
COMMENT ON COLUMN recur.stats.last_tick IS 'When a batch was last dispatched';
COMMENT ON COLUMN recur.stats.batches IS 'Batches that had anything to do';
COMMENT ON COLUMN recur.stats.failed_batches IS 'Batches that had to be repeated';
COMMENT ON COLUMN recur.stats.dispatched IS 'Dispatches of schedules';
COMMENT ON COLUMN recur.stats.skipped IS 'Occurrences that did not fire; recur.events says why';
COMMENT ON COLUMN recur.stats.ended IS 'Actions that have ended';
COMMENT ON COLUMN recur.stats.errors IS 'Actions that could not be dispatched, counted at each try';
COMMENT ON COLUMN recur.stats.leases_expired IS 'Dispatches that were taken from consumers that did not report';
COMMENT ON COLUMN recur.stats.interactive IS 'Runs of journeys that failed because they met an interactive state';
COMMENT ON COLUMN recur.stats.alarms_raised IS 'Alarms of late_after, max_runtime and max_silence that were raised';
COMMENT ON COLUMN recur.stats.alarms_now IS 'Actions of which an alarm is raised now';
COMMENT ON COLUMN recur.stats.lateness_p50_ms IS
    'The time from due to dispatched, or, for a staged dispatch, to announced: the median';
COMMENT ON COLUMN recur.stats.lateness_p99_ms IS 'The same: 99 of 100 dispatches were not later';
COMMENT ON COLUMN recur.stats.lateness_max_ms IS 'The same: no dispatch was later';

CREATE FUNCTION recur_internal.workers(
    OUT database oid, OUT kind text, OUT pid int, OUT state text, OUT state_since timestamptz, OUT wakes_at timestamptz
) RETURNS SETOF record
    LANGUAGE c VOLATILE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'workers_wrapper';
COMMENT ON FUNCTION recur_internal.workers IS
    'Internal: what recur.workers shows, of this database or, to a member of pg_monitor, of all databases';

CREATE FUNCTION recur_internal.missing_workers(
    OUT databases int, OUT processes int, OUT max_worker_processes int
) RETURNS SETOF record
    LANGUAGE c VOLATILE ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'missing_workers_wrapper';
COMMENT ON FUNCTION recur_internal.missing_workers IS
    'Internal: how many databases share how many processes, and the max_worker_processes that would be enough; no row '
    'if each has its own';

CREATE FUNCTION recur_internal.missing_workers_finding(OUT finding text, OUT remedy text) RETURNS SETOF record
    LANGUAGE sql VOLATILE ROWS 1
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT format('%s databases share %s worker processes: what is due in a database without one fires later, up to a '
                  'minute if there are many', m.databases, m.processes),
           format('Set max_worker_processes = %s and restart the server%s. recur.workers shows which databases have '
                  'none.', m.max_worker_processes,
                  CASE current_setting('recur.max_workers') WHEN '-1' THEN ''
                       ELSE ', and raise recur.max_workers, or set it to -1' END)
      FROM recur_internal.missing_workers() AS m
$$;
COMMENT ON FUNCTION recur_internal.missing_workers_finding IS
    'Internal: what recur.doctor says of missing_workers';

CREATE VIEW recur.workers AS
SELECT d.datname AS database, w.kind, w.pid, w.state, w.state_since,
       CASE WHEN w.state IN ('sleeping', 'backing off', 'waiting') THEN w.wakes_at END AS wakes_at,
       CASE WHEN a.wait_event_type IN ('Lock', 'LWLock', 'IO') THEN a.wait_event_type || ': ' || a.wait_event
            WHEN w.state = 'sleeping' AND w.wakes_at > clock_timestamp() THEN 'the next instant, or a change'
            WHEN w.state = 'backing off' THEN 'the next try, after an error'
            WHEN w.state = 'waiting' THEN 'a visit of the roaming dispatcher'
       END AS waits_for
  FROM recur_internal.workers() AS w
  LEFT JOIN pg_database AS d ON d.oid = w.database
  LEFT JOIN pg_stat_activity AS a ON a.pid = w.pid
 ORDER BY d.datname, w.kind, w.pid;
COMMENT ON VIEW recur.workers IS
    'The background workers of pg_recur in this database, and whether it has none; a member of pg_monitor sees all '
    'databases';
COMMENT ON COLUMN recur.workers.database IS 'The database that the worker serves';
COMMENT ON COLUMN recur.workers.kind IS
    'dispatcher; roaming, for a dispatcher that leaves when another database is in need; maintenance; executor, which '
    'runs SQL actions and handlers; or none, where the database has no process because there are too few';
COMMENT ON COLUMN recur.workers.pid IS 'The process id of the worker; NULL if there is none';
COMMENT ON COLUMN recur.workers.state IS
    'starting, working, sleeping, idle or backing off; waiting, if the database has no process';
COMMENT ON COLUMN recur.workers.state_since IS 'Since when the worker is in this state';
COMMENT ON COLUMN recur.workers.wakes_at IS
    'When the worker wakes by itself, or the database is visited; a change wakes it earlier';
COMMENT ON COLUMN recur.workers.waits_for IS 'What the worker waits for';

CREATE FUNCTION recur_internal.is_preloaded() RETURNS boolean
    LANGUAGE c VOLATILE
    AS 'MODULE_PATHNAME', 'is_preloaded_wrapper';
COMMENT ON FUNCTION recur_internal.is_preloaded IS 'Internal: was pg_recur loaded when the server started?';

CREATE FUNCTION recur_internal.library_version() RETURNS text
    LANGUAGE c STABLE PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'library_version_wrapper';
COMMENT ON FUNCTION recur_internal.library_version IS
    'Internal: the version of the library, which the extension in this database should have as well';

-- Why nothing fires by itself, if so.
CREATE FUNCTION recur_internal.why_nothing_fires() RETURNS TABLE (severity text, finding text, remedy text)
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT 'error',
           format('the extension in this database has version %s, and the library %s: nothing fires by itself',
                  e.extversion, recur_internal.library_version()),
           'ALTER EXTENSION pg_recur UPDATE; where the library is the older one, restart the server with the new one.'
      FROM pg_extension AS e
     WHERE e.extname = 'pg_recur' AND e.extversion <> recur_internal.library_version();
    RETURN QUERY
    SELECT 'error', recur_internal.hold_reason(),
           'recur.arm() makes this place its home: then everything that is due fires.'
     WHERE recur_internal.hold_reason() IS NOT NULL;
    -- Not by shared_preload_libraries, which only superusers may read.
    IF NOT recur_internal.is_preloaded() THEN
        RETURN QUERY SELECT 'error', 'pg_recur is not preloaded: nothing fires by itself',
            'Add pg_recur to shared_preload_libraries and restart the server, or call recur.tick() yourself.';
    ELSIF NOT current_setting('recur.enabled')::boolean THEN
        RETURN QUERY SELECT 'error', 'recur.enabled is off: nothing fires by itself', 'Switch it on and reload.';
    ELSIF EXISTS (SELECT FROM recur_internal.settings_in_force() AS s
                   WHERE s.name = 'recur.enabled' AND s.source = 'database' AND NOT s.value::boolean) THEN
        RETURN QUERY SELECT 'error', 'recur.enabled is off in this database: nothing fires by itself',
            'recur.reset_setting(''enabled'') leaves it to the server''s configuration.';
    ELSIF EXISTS (SELECT FROM recur_internal.test_clock) THEN
        RETURN QUERY SELECT 'note', format('this is a test database, whose clock says %s: nothing fires by itself',
                                      recur.clock()),
            'recur.set_clock(…) sets the clock, and recur.tick() dispatches what is due.';
    ELSIF NOT EXISTS (SELECT FROM recur_internal.workers() AS w
                       WHERE w.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
                         AND w.kind IN ('dispatcher', 'roaming', 'none')) THEN
        RETURN QUERY SELECT 'error', 'no dispatcher runs in this database',
            'See whether recur.databases names it, and whether max_worker_processes leaves room; '
            'the server''s log says more.';
    END IF;
    RETURN QUERY SELECT 'warning', m.finding, m.remedy FROM recur_internal.missing_workers_finding() AS m;
END
$$;
COMMENT ON FUNCTION recur_internal.why_nothing_fires IS
    'Internal: the findings of recur.doctor that say why nothing fires by itself';

-- Runs that fail, and alarms that are raised: the oldest of each.
CREATE VIEW recur_internal.trouble AS
(SELECT format('runs of action "%s" have failed %s times in a row, since %s: %s', d.name, p.failed_in_a_row,
               p.failing_since, p.last_run_error) AS finding,
        format('recur.history(%L) shows the dispatches; recur.retry repeats one.', d.id) AS remedy
   FROM recur_internal.progress AS p
   JOIN recur_internal.definitions AS d ON d.id = p.action_id
  WHERE p.failed_in_a_row > 0
  ORDER BY p.failing_since LIMIT 20)
UNION ALL
(SELECT format('action "%s": %s since %s', d.name, v.what, v.since),
        format('The event alarm.raised says more; recur.history(%L) shows the dispatches.', d.id)
   FROM recur_internal.alarms AS a
   JOIN recur_internal.definitions AS d ON d.id = a.action_id,
        LATERAL (VALUES ('a dispatch has waited to be started', a.late_since),
                        ('a dispatch has been running', a.overrunning_since),
                        ('no dispatch was completed', a.silent_since)) AS v (what, since)
  WHERE v.since IS NOT NULL
  ORDER BY v.since LIMIT 20);
COMMENT ON VIEW recur_internal.trouble IS 'Internal: what recur.doctor says of failing runs and raised alarms';
COMMENT ON COLUMN recur_internal.trouble.finding IS 'What is wrong';
COMMENT ON COLUMN recur_internal.trouble.remedy IS 'What to do about it';

-- Runs as the owner of the objects: it reads the tables, and the sessions of other roles.
CREATE FUNCTION recur.doctor() RETURNS TABLE (severity text, finding text, remedy text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    at timestamptz := recur.clock();
BEGIN
    RETURN QUERY SELECT w.severity, w.finding, w.remedy FROM recur_internal.why_nothing_fires() AS w;
    RETURN QUERY
    SELECT 'error',
           format('%s actions are overdue by more than a minute, the oldest since %s', count(*), min(t.due_at)),
           'See recur.workers and the server''s log: is a worker behind, or a timer locked by an open transaction?'
      FROM recur_internal.timers AS t WHERE t.due_at < at - interval '1 minute' HAVING count(*) > 0;
    RETURN QUERY
    SELECT 'warning', format('the row of setting "%s" in recur_internal.settings is ignored: %s', i.name, i.problem),
           format('recur.set_setting sets what holds; DELETE FROM recur_internal.settings WHERE name = %L removes it.',
                  i.name)
      FROM recur_internal.ignored_settings() AS i LIMIT 20;
    RETURN QUERY
    SELECT 'warning', format('action "%s" fails: %s', a.name, a.last_error),
           format('recur.update(%L, …) mends it.', a.id)
      FROM recur.recurring_actions AS a WHERE a.error_count > 0 LIMIT 20;
    RETURN QUERY SELECT 'warning', u.finding, u.remedy FROM recur_internal.trouble AS u UNION ALL
                 SELECT x.severity, x.finding, x.remedy FROM recur_internal.execution_trouble AS x;
    RETURN QUERY
    SELECT 'warning',
           format('%s actions and %s pending or running dispatches belong to role "%s", which no longer exists',
                  c.actions, c.dispatches, o.name),
           format('Admins alone see and claim these dispatches. '
                  'SELECT recur.reassign_owner(%L, …) gives actions and pending dispatches to another role.', o.name)
      FROM recur_internal.owners AS o,
           LATERAL (SELECT (SELECT count(*) FROM recur_internal.definitions AS d WHERE d.owner_id = o.id) AS actions,
                           (SELECT count(*) FROM recur_internal.live_dispatches AS l
                             WHERE l.owner_id = o.id) AS dispatches) AS c
     WHERE NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = o.role) AND c.actions + c.dispatches > 0
     ORDER BY c.actions + c.dispatches DESC LIMIT 20;
    RETURN QUERY
    SELECT 'warning',
           format('%s dispatches of provider "%s"%s wait to be claimed, the oldest since %s', count(*), l.provider,
                  CASE min(l.action_type) WHEN max(l.action_type)
                       THEN format(' and action type "%s"', min(l.action_type)) END,
                  min(l.available_at)), 'Start consumers for it, or see why they do not claim.'
      FROM recur_internal.live_dispatches AS l
     WHERE l.status = 'pending' AND l.available_at < at - interval '5 minutes' AND l.primary_agent IS NULL
       AND l.in_database IS NULL
     GROUP BY l.provider ORDER BY min(l.available_at) LIMIT 20;
    RETURN QUERY
    SELECT 'warning',
           format('%s dispatches wait for agent "%s"%s, the oldest since %s', count(*), l.primary_agent,
                  CASE WHEN l.fallback_agent IS NOT NULL THEN format(' or its fallback "%s"', l.fallback_agent) END,
                  min(l.available_at)),
           format('Start a consumer that claims as this agent: recur.claim(…, agent => %L).', l.primary_agent)
      FROM recur_internal.live_dispatches AS l
     WHERE l.status = 'pending' AND l.available_at < at - interval '5 minutes' AND l.primary_agent IS NOT NULL
     GROUP BY l.primary_agent, l.fallback_agent
     ORDER BY min(l.available_at) LIMIT 20;
    RETURN QUERY
    SELECT 'warning', format('%s dispatches have failed for good within the last day', count(*)),
           'See recur.dead_letters.'
      FROM recur_internal.finished_dispatches AS f
     -- The first condition selects the index.
     WHERE f.status <> 'completed' AND f.status = 'failed' AND f.finished_at > at - interval '1 day'
    HAVING count(*) > 0;
    RETURN QUERY
    SELECT 'warning',
           format('a transaction of %s has been open since %s', coalesce(nullif(s.application_name, ''), s.usename),
                  s.xact_start),
           format('While it is open nothing dead can be removed; pg_terminate_backend(%s) ends it.', s.pid)
      FROM pg_stat_activity AS s
     WHERE s.datname = current_database() AND s.xact_start < clock_timestamp() - interval '1 hour'
       AND s.backend_type = 'client backend';
    RETURN QUERY
    SELECT 'error',
           format('the NOTIFY queue is %s %% full: no notifications are sent', round((100 * u.usage)::numeric, 1)),
           'A session listens and does not end its transaction: end it, if need be with pg_terminate_backend. '
           'The server''s log names one. Consumers that poll go on.'
      FROM (SELECT pg_notification_queue_usage() AS usage) AS u
     WHERE 100 * u.usage > current_setting('recur.notify_queue_limit')::int;
END
$$;
COMMENT ON FUNCTION recur.doctor IS
    'Problems, and what to do about each; no rows mean that all is well';
