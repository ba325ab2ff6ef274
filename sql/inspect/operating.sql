-- Statistics, workers and problems, for operators.

CREATE FUNCTION recur_internal.stats(
    OUT since timestamptz, OUT last_tick timestamptz, OUT batches bigint, OUT failed_batches bigint,
    OUT dispatched bigint, OUT skipped bigint, OUT ended bigint, OUT errors bigint, OUT leases_expired bigint,
    OUT lateness_p50 float8, OUT lateness_p99 float8, OUT lateness_max float8
) RETURNS SETOF record
    LANGUAGE c VOLATILE ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'stats_wrapper';
COMMENT ON FUNCTION recur_internal.stats IS 'Internal: what recur.stats shows, lateness in milliseconds';

CREATE VIEW recur.stats AS
SELECT current_database() AS database, s.since, s.last_tick, s.batches, s.failed_batches, s.dispatched, s.skipped,
       s.ended, s.errors, s.leases_expired, s.lateness_p50 AS lateness_p50_ms, s.lateness_p99 AS lateness_p99_ms,
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
COMMENT ON FUNCTION recur_internal.workers IS 'Internal: what recur.workers shows';

CREATE VIEW recur.workers AS
SELECT d.datname AS database, w.kind, w.pid, w.state, w.state_since,
       CASE WHEN w.state IN ('sleeping', 'backing off') THEN w.wakes_at END AS wakes_at,
       CASE WHEN a.wait_event_type IN ('Lock', 'LWLock', 'IO') THEN a.wait_event_type || ': ' || a.wait_event
            WHEN w.state = 'sleeping' AND w.wakes_at > clock_timestamp() THEN 'the next instant, or a change'
            WHEN w.state = 'backing off' THEN 'the next try, after an error'
       END AS waits_for
  FROM recur_internal.workers() AS w
  LEFT JOIN pg_database AS d ON d.oid = w.database
  LEFT JOIN pg_stat_activity AS a ON a.pid = w.pid
 WHERE d.datname = current_database() OR pg_has_role('pg_monitor', 'USAGE')
 ORDER BY d.datname, w.kind, w.pid;
COMMENT ON VIEW recur.workers IS
    'The background workers of pg_recur in this database; a member of pg_monitor sees those of all databases';
COMMENT ON COLUMN recur.workers.database IS 'The database that the worker serves';
COMMENT ON COLUMN recur.workers.kind IS 'dispatcher or maintenance';
COMMENT ON COLUMN recur.workers.pid IS 'The process id of the worker';
COMMENT ON COLUMN recur.workers.state IS 'starting, working, sleeping or backing off';
COMMENT ON COLUMN recur.workers.state_since IS 'Since when the worker is in this state';
COMMENT ON COLUMN recur.workers.wakes_at IS 'When the worker wakes by itself; a change wakes it earlier';
COMMENT ON COLUMN recur.workers.waits_for IS 'What the worker waits for';

CREATE FUNCTION recur_internal.is_preloaded() RETURNS boolean
    LANGUAGE c VOLATILE
    AS 'MODULE_PATHNAME', 'is_preloaded_wrapper';
COMMENT ON FUNCTION recur_internal.is_preloaded IS 'Internal: was pg_recur loaded when the server started?';

-- Runs as the owner of the objects: it reads the tables, and the sessions of other roles.
CREATE FUNCTION recur_internal.library_version() RETURNS text
    LANGUAGE c STABLE PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'library_version_wrapper';
COMMENT ON FUNCTION recur_internal.library_version IS
    'Internal: the version of the library, which the extension in this database should have as well';

CREATE FUNCTION recur.doctor() RETURNS TABLE (severity text, finding text, remedy text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    at timestamptz := clock_timestamp();
BEGIN
    RETURN QUERY
    SELECT 'error',
           format('the extension in this database has version %s, and the library %s: nothing fires by itself',
                  e.extversion, recur_internal.library_version()),
           'ALTER EXTENSION pg_recur UPDATE; where the library is the older one, restart the server with the new one.'
      FROM pg_extension AS e
     WHERE e.extname = 'pg_recur' AND e.extversion <> recur_internal.library_version();
    -- Not by shared_preload_libraries, which only superusers may read.
    IF NOT recur_internal.is_preloaded() THEN
        RETURN QUERY SELECT 'error', 'pg_recur is not preloaded: nothing fires by itself',
            'Add pg_recur to shared_preload_libraries and restart the server, or call recur.tick() yourself.';
    ELSIF NOT current_setting('recur.enabled')::boolean THEN
        RETURN QUERY SELECT 'error', 'recur.enabled is off: nothing fires by itself', 'Switch it on and reload.';
    ELSIF NOT EXISTS (SELECT FROM recur_internal.workers() AS w
                       WHERE w.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
                         AND w.kind = 'dispatcher') THEN
        RETURN QUERY SELECT 'error', 'no dispatcher runs in this database',
            'See whether recur.databases names it, and whether max_worker_processes leaves room; '
            'the server''s log says more.';
    END IF;
    RETURN QUERY
    SELECT 'error',
           format('%s actions are overdue by more than a minute, the oldest since %s', count(*), min(t.due_at)),
           'See recur.workers and the server''s log: is a worker behind, or a timer locked by an open transaction?'
      FROM recur_internal.timers AS t WHERE t.due_at < at - interval '1 minute' HAVING count(*) > 0;
    RETURN QUERY
    SELECT 'warning', format('action "%s" fails: %s', a.name, a.last_error),
           format('recur.update(%L, …) mends it.', a.id)
      FROM recur.recurring_actions AS a WHERE a.error_count > 0 LIMIT 20;
    RETURN QUERY
    SELECT 'warning', format('%s actions belong to role "%s", which no longer exists', count(*), o.name),
           'Their dispatches are seen by admins only. Delete them, or create them again as another role.'
      FROM recur_internal.definitions AS d
      JOIN recur_internal.owners AS o ON o.id = d.owner_id
     WHERE NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = o.role)
     GROUP BY o.id, o.name;
    RETURN QUERY
    SELECT 'warning',
           format('%s dispatches of provider "%s" wait to be claimed, the oldest since %s', count(*), l.provider,
                  min(l.available_at)),
           'Start consumers for it, or see why they do not claim.'
      FROM recur_internal.live_dispatches AS l
     WHERE l.status = 'pending' AND l.available_at < at - interval '5 minutes'
     GROUP BY l.provider;
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
           format('While it is open nothing dead can be removed; end it, if need be with pg_terminate_backend(%s).',
                  s.pid)
      FROM pg_stat_activity AS s
     WHERE s.datname = current_database() AND s.xact_start < at - interval '1 hour'
       AND s.backend_type = 'client backend';
    RETURN QUERY
    SELECT 'error',
           format('the NOTIFY queue is %s %% full: pg_recur sends no notifications',
                  round((100 * u.usage)::numeric, 1)),
           'A session listens and does not end its transaction: end it, if need be with pg_terminate_backend. '
           'The server''s log names one. Consumers that poll go on.'
      FROM (SELECT pg_notification_queue_usage() AS usage) AS u
     WHERE 100 * u.usage > current_setting('recur.notify_queue_limit')::int;
END
$$;
COMMENT ON FUNCTION recur.doctor IS
    'Problems, and what to do about each; no rows mean that all is well';
