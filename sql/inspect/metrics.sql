-- What a monitoring system scrapes: totals since the server started, the state of now, and histograms. The names are
-- those of Prometheus. Nothing here is content, and no label grows with the number of actions.

CREATE FUNCTION recur_internal.counted()
    RETURNS TABLE (name text, kind text, help text, le text, value float8)
    LANGUAGE c VOLATILE ROWS 50
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'counted_wrapper';
COMMENT ON FUNCTION recur_internal.counted IS
    'Internal: what the dispatchers and consumers of this database have done since the server started';

-- The backlog of each provider, and the dead letters. The cost of a scrape is bounded, however long the queue is.
-- Owners and providers are found from index entry to index entry: 5,000 pairs at most, and 50 of one owner. Of each
-- pair 100,000 dispatches are counted, and of each owner 200,000: an author who makes up providers, or fills the
-- queue, hides nothing of other owners. The planner must not take a queue for as short as it was when it was analyzed.
CREATE FUNCTION recur_internal.queued() RETURNS TABLE (name text, help text, provider text, value float8)
    LANGUAGE sql VOLATILE ROWS 50
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET jit = off
AS $$
    WITH RECURSIVE pairs AS (
        (SELECT l.owner_id, l.provider, 1 AS number
           FROM recur_internal.live_dispatches AS l
          WHERE l.status <> 'running'
          ORDER BY l.owner_id, l.provider LIMIT 1)
        UNION ALL
        SELECT n.owner_id, n.provider, CASE WHEN n.owner_id = p.owner_id THEN p.number + 1 ELSE 1 END
          FROM pairs AS p,
               LATERAL ((SELECT l.owner_id, l.provider
                           FROM recur_internal.live_dispatches AS l
                          WHERE p.number < 50
                            AND l.status <> 'running' AND (l.owner_id, l.provider) > (p.owner_id, p.provider)
                          ORDER BY l.owner_id, l.provider LIMIT 1)
                         UNION ALL
                        (SELECT l.owner_id, l.provider
                           FROM recur_internal.live_dispatches AS l
                          WHERE p.number >= 50 AND l.status <> 'running' AND l.owner_id > p.owner_id
                          ORDER BY l.owner_id, l.provider LIMIT 1)) AS n
    ), found AS MATERIALIZED (
        SELECT p.owner_id, p.provider FROM pairs AS p LIMIT 5000
    ), waiting AS (
        SELECT w.provider, w.available_at
          FROM (SELECT DISTINCT f.owner_id FROM found AS f) AS o,
               LATERAL (SELECT l.provider, l.available_at
                          FROM found AS f,
                               LATERAL (SELECT q.provider, q.available_at
                                          FROM recur_internal.live_dispatches AS q
                                         WHERE q.status <> 'running' AND q.owner_id = f.owner_id
                                           AND q.provider = f.provider
                                         LIMIT 100000) AS l
                         WHERE f.owner_id = o.owner_id
                         LIMIT 200000) AS w
         LIMIT 2000000
    ), running AS (
        SELECT l.provider FROM recur_internal.live_dispatches AS l WHERE l.status = 'running' LIMIT 100000
    ), counted AS (
        SELECT u.provider, sum(u.pending) AS pending, sum(u.scheduled) AS scheduled, sum(u.running) AS running,
               min(u.oldest) AS oldest
          FROM (SELECT w.provider, count(*) FILTER (WHERE w.available_at <= c.now) AS pending,
                       count(*) FILTER (WHERE w.available_at > c.now) AS scheduled, 0 AS running,
                       min(w.available_at) FILTER (WHERE w.available_at <= c.now) AS oldest
                  FROM waiting AS w, (SELECT recur.clock() AS now) AS c
                 GROUP BY w.provider
                UNION ALL
                SELECT r.provider, 0, 0, count(*), NULL FROM running AS r GROUP BY r.provider) AS u
         GROUP BY u.provider
    ), ranked AS (
        SELECT c.*, row_number() OVER (ORDER BY c.pending + c.scheduled + c.running DESC, c.provider) AS place
          FROM counted AS c
    ), shown AS (
        -- Authors make up the names of providers.
        SELECT CASE WHEN r.place <= 50 THEN r.provider ELSE '(others)' END AS provider,
               sum(r.pending) AS pending, sum(r.scheduled) AS scheduled, sum(r.running) AS running,
               coalesce(extract(epoch FROM recur.clock() - min(r.oldest)), 0) AS oldest
          FROM ranked AS r
         GROUP BY 1
    )
    SELECT g.name, g.help, s.provider, g.value
      FROM shown AS s,
           LATERAL (VALUES
               ('recur_pending', 'Dispatches that wait to be claimed', s.pending::float8),
               ('recur_scheduled', 'Dispatches that become available later', s.scheduled::float8),
               ('recur_running', 'Dispatches that consumers have claimed', s.running::float8),
               ('recur_oldest_pending_seconds', 'How long the oldest pending dispatch has waited',
                s.oldest::float8)) AS g (name, help, value)
    UNION ALL
    SELECT 'recur_dead_letters', 'Dispatches that have failed for good, within the retention', NULL,
           count(*)::float8
      FROM (SELECT FROM recur_internal.finished_dispatches AS f
             -- The first condition selects the index.
             WHERE f.status <> 'completed' AND f.status = 'failed' LIMIT 100000) AS d
$$;
COMMENT ON FUNCTION recur_internal.queued IS 'Internal: the queue by provider, and the dead letters, for recur.metrics';

CREATE VIEW recur_internal.action_states AS
SELECT count(*) FILTER (WHERE t.enabled AND t.error_count = 0 AND f.action_id IS NULL) AS active,
       count(*) FILTER (WHERE t.enabled AND (t.error_count > 0 OR f.action_id IS NOT NULL)) AS failing,
       count(*) FILTER (WHERE NOT t.enabled AND t.ended_reason IS NULL) AS paused,
       count(*) FILTER (WHERE NOT t.enabled AND t.ended_reason IS NOT NULL) AS ended,
       count(*) FILTER (WHERE t.next_run_at < recur.clock()) AS overdue,
       coalesce(extract(epoch FROM recur.clock() - min(t.next_run_at) FILTER (WHERE t.next_run_at < recur.clock())),
                0) AS overdue_for
  FROM (SELECT a.action_id, a.enabled, a.error_count, a.ended_reason, a.next_run_at
          FROM recur_internal.timers AS a LIMIT 1000000) AS t
  LEFT JOIN (SELECT p.action_id FROM recur_internal.progress AS p WHERE p.failed_in_a_row > 0 LIMIT 1000000) AS f
    ON f.action_id = t.action_id;
COMMENT ON VIEW recur_internal.action_states IS 'Internal: actions by their state, up to a million, for recur.metrics';
COMMENT ON COLUMN recur_internal.action_states.active IS 'Actions that fire';
COMMENT ON COLUMN recur_internal.action_states.failing IS
    'Actions whose last run has failed, or that could not be dispatched';
COMMENT ON COLUMN recur_internal.action_states.paused IS 'Actions that are paused';
COMMENT ON COLUMN recur_internal.action_states.ended IS 'Actions that have ended';
COMMENT ON COLUMN recur_internal.action_states.overdue IS 'Actions whose next run was due and is not dispatched';
COMMENT ON COLUMN recur_internal.action_states.overdue_for IS 'How many seconds the most overdue of them has been so';

-- Of all owners, and so it runs as the owner of the tables.
CREATE FUNCTION recur.metrics() RETURNS TABLE (name text, kind text, help text, labels jsonb, value float8)
    LANGUAGE sql VOLATILE SECURITY DEFINER ROWS 100
    SET search_path = pg_catalog, pg_temp
    SET jit = off
AS $$
    SELECT c.name, c.kind, c.help,
           CASE WHEN c.le IS NULL THEN '{}'::jsonb ELSE jsonb_build_object('le', c.le) END, c.value
      FROM recur_internal.counted() AS c
    UNION ALL
    SELECT q.name, 'gauge', q.help,
           CASE WHEN q.provider IS NULL THEN '{}' ELSE jsonb_build_object('provider', q.provider) END, q.value
      FROM recur_internal.queued() AS q
    UNION ALL
    SELECT 'recur_actions', 'gauge', 'Actions by state', jsonb_build_object('state', g.state), g.value
      FROM recur_internal.action_states AS s,
           LATERAL (VALUES ('active', s.active::float8), ('failing', s.failing::float8),
                           ('paused', s.paused::float8), ('ended', s.ended::float8)) AS g (state, value)
    UNION ALL
    SELECT g.name, 'gauge', g.help, '{}', g.value
      FROM recur_internal.action_states AS s,
           LATERAL (VALUES
               ('recur_actions_overdue', 'Actions whose next run was due and is not dispatched', s.overdue::float8),
               ('recur_oldest_overdue_seconds', 'How long the most overdue action has been so',
                s.overdue_for::float8)) AS g (name, help, value)
    UNION ALL
    SELECT 'recur_alarms', 'gauge', 'Actions of which an alarm is raised', '{}',
           (SELECT count(*) FROM recur_internal.alarms AS a
             WHERE a.late_since IS NOT NULL OR a.overrunning_since IS NOT NULL OR a.silent_since IS NOT NULL)::float8
    UNION ALL
    SELECT 'recur_workers', 'gauge', 'Background processes of this database', jsonb_build_object('kind', k.kind),
           (SELECT count(*) FROM recur_internal.workers() AS w
             WHERE w.kind = k.kind AND w.pid IS NOT NULL
               AND w.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()))::float8
      FROM (VALUES ('dispatcher'), ('roaming'), ('executor'), ('maintenance')) AS k (kind)
    UNION ALL
    SELECT 'recur_held', 'gauge', '1 if the database is a copy, which fires after recur.arm()', '{}',
           (recur_internal.hold_reason() IS NOT NULL)::int::float8
    UNION ALL
    SELECT 'recur_notify_queue_ratio', 'gauge', 'How full the NOTIFY queue of the server is, from 0 to 1', '{}',
           pg_notification_queue_usage()
$$;
COMMENT ON FUNCTION recur.metrics IS
    'Everything that a monitoring system scrapes, of all owners and without any content, in the terms of Prometheus: '
    'counters since the server started, gauges, and histograms. One call has a bounded cost';
