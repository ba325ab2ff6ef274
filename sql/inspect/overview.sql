-- The state of all actions, on one screen.

-- An interval as people say it: 5 min, 3 d.
CREATE FUNCTION recur_internal.ago(span interval) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN s IS NULL THEN NULL
                WHEN s < 1 THEN (s * 1000)::int || ' ms'
                WHEN s < 120 THEN s::int || ' s'
                WHEN s < 7200 THEN (s / 60)::int || ' min'
                WHEN s < 172800 THEN (s / 3600)::int || ' h'
                ELSE (s / 86400)::int || ' d' END
      FROM (SELECT abs(extract(epoch FROM span)) AS s) AS seconds
$$;
COMMENT ON FUNCTION recur_internal.ago IS 'Internal: the length of an interval in one unit';

-- The latest run of each action, whatever caused it. Each part is read from an index, however long the history is.
CREATE VIEW recur_internal.latest_runs WITH (security_barrier) AS
SELECT d.id AS action_id, l.status, l.created_at, l.scheduled_at
  FROM recur_internal.definitions AS d,
       LATERAL (SELECT u.status, u.created_at, u.scheduled_at
                  FROM ((SELECT o.status, o.created_at, o.scheduled_at
                           FROM recur_internal.live_dispatches AS o
                          WHERE o.action_id = d.id AND o.scheduled_at <= recur.clock()
                          ORDER BY o.scheduled_at DESC LIMIT 1)
                         UNION ALL
                        (SELECT f.status, f.created_at, f.scheduled_at
                           FROM recur_internal.finished_dispatches AS f
                          WHERE f.action_id = d.id
                          ORDER BY f.scheduled_at DESC LIMIT 1)) AS u
                 ORDER BY u.scheduled_at DESC LIMIT 1) AS l
 WHERE (SELECT recur_internal.sees_all()) OR d.owner_id = ANY ((SELECT recur_internal.visible_owners())::int[]);
COMMENT ON VIEW recur_internal.latest_runs IS 'Internal: the latest run of each action that is not ahead of its time';
COMMENT ON COLUMN recur_internal.latest_runs.action_id IS 'The action';

-- Nothing is cut. The columns that are always narrow come first: a terminal shows them whatever the others hold. psql
-- does not pad the last one.
CREATE VIEW recur.overview AS
SELECT CASE WHEN a.enabled AND (SELECT recur_internal.hold_reason()) IS NOT NULL THEN 'held'
            WHEN a.enabled AND (a.error_count > 0 OR a.failed_in_a_row > 0) THEN 'failing'
            WHEN r.late_since IS NOT NULL THEN 'late'
            WHEN r.overrunning_since IS NOT NULL THEN 'overrunning'
            WHEN r.silent_since IS NOT NULL THEN 'silent'
            WHEN a.enabled THEN 'active'
            WHEN a.ended_reason IS NOT NULL THEN 'ended'
            ELSE 'paused' END AS state,
       to_char(a.next_run_at AT TIME ZONE a.timezone,
               CASE WHEN a.next_run_at < recur.clock() + interval '6 days' THEN 'Dy HH24:MI' ELSE 'YYYY-MM-DD' END)
       || CASE WHEN a.next_run_at <= recur.clock() THEN ', due'
               ELSE ', ' || recur_internal.ago(a.next_run_at - recur.clock()) END AS next_run,
       recur_internal.ago(recur.clock() - greatest(a.last_run_at, CASE WHEN d.scheduled_at <= recur.clock()
                                                                       THEN d.scheduled_at END)) AS ran_ago,
       d.status || ' +' || recur_internal.ago(greatest(d.created_at - d.scheduled_at, interval '0')) AS last_outcome,
       greatest(a.failed_in_a_row, a.error_count) AS failures, a.run_count AS runs,
       a.name, a.owner, a.tenant, a.subject, a.timezone, recur.describe(a.schedule) AS schedule,
       CASE WHEN a.enabled AND a.error_count > 0 THEN a.last_error
            WHEN a.enabled AND a.failed_in_a_row > 0 THEN a.last_run_error
            WHEN a.enabled THEN NULL
            ELSE coalesce(a.ended_reason, a.paused_reason) END AS reason
  FROM recur.recurring_actions AS a
  LEFT JOIN recur_internal.latest_runs AS d ON d.action_id = a.id
  LEFT JOIN recur_internal.alarms AS r ON r.action_id = a.id
 ORDER BY a.next_run_at NULLS LAST, a.name;
COMMENT ON VIEW recur.overview IS 'The state of all actions, on one screen: try \watch 1';
COMMENT ON COLUMN recur.overview.state IS
    'active, paused, ended; failing: the last run has failed, or the action could not be dispatched; late, '
    'overrunning or silent: an alarm is raised; or held: this database is a copy, which recur.arm() starts';
COMMENT ON COLUMN recur.overview.next_run IS 'The next run, on a clock in that zone, and how far away it is';
COMMENT ON COLUMN recur.overview.ran_ago IS 'How long ago the action last ran, by the schedule or by hand';
COMMENT ON COLUMN recur.overview.last_outcome IS
    'The status of the last dispatch, by the schedule or by hand, and how late it was';
COMMENT ON COLUMN recur.overview.failures IS
    'How many runs have failed in a row, or how often in a row the action could not be dispatched';
COMMENT ON COLUMN recur.overview.runs IS 'How many runs the schedule has dispatched';
COMMENT ON COLUMN recur.overview.name IS 'The action';
COMMENT ON COLUMN recur.overview.owner IS 'The role that the action belongs to';
COMMENT ON COLUMN recur.overview.tenant IS 'The customer of the application';
COMMENT ON COLUMN recur.overview.subject IS 'What the action is about, such as an invoice';
COMMENT ON COLUMN recur.overview.timezone IS 'The time zone of the schedule';
COMMENT ON COLUMN recur.overview.schedule IS 'When the action recurs, in words';
COMMENT ON COLUMN recur.overview.reason IS
    'Why the action is paused or has ended, or the error of the last run or dispatch while it is failing';

-- For those who watch the installation and are to see nothing of its content: no names of actions, tenants or subjects.
CREATE VIEW recur.monitoring WITH (security_barrier) AS
SELECT recur_internal.owner_name(coalesce(a.owner_id, d.owner_id)) AS owner,
       coalesce(a.namespace, d.namespace) AS namespace, coalesce(a.provider, d.provider) AS provider,
       coalesce(a.active, 0) AS active, coalesce(a.failing, 0) AS failing, coalesce(a.paused, 0) AS paused,
       coalesce(a.ended, 0) AS ended, coalesce(a.overdue, 0) AS overdue, a.overdue_for,
       coalesce(d.pending, 0) AS pending, d.waiting_for, coalesce(d.running, 0) AS running, d.running_for,
       coalesce(a.completed_runs, 0) AS completed_runs, coalesce(a.failed_runs, 0) AS failed_runs
  FROM (SELECT f.owner_id, f.namespace, f.provider,
               count(*) FILTER (WHERE t.enabled AND t.error_count = 0 AND p.failed_in_a_row = 0) AS active,
               count(*) FILTER (WHERE t.enabled AND (t.error_count > 0 OR p.failed_in_a_row > 0)) AS failing,
               count(*) FILTER (WHERE NOT t.enabled AND t.ended_reason IS NULL) AS paused,
               count(*) FILTER (WHERE NOT t.enabled AND t.ended_reason IS NOT NULL) AS ended,
               count(*) FILTER (WHERE t.next_run_at < recur.clock()) AS overdue,
               recur.clock() - min(t.next_run_at) FILTER (WHERE t.next_run_at < recur.clock()) AS overdue_for,
               sum(p.completed_count)::bigint AS completed_runs, sum(p.failed_count)::bigint AS failed_runs
          FROM recur_internal.definitions AS f
          JOIN recur_internal.timers AS t ON t.action_id = f.id
          JOIN recur_internal.progress AS p ON p.action_id = f.id
         GROUP BY f.owner_id, f.namespace, f.provider) AS a
  FULL JOIN (SELECT l.owner_id, l.namespace, l.provider,
                    count(*) FILTER (WHERE l.status = 'pending' AND l.available_at <= recur.clock()) AS pending,
                    recur.clock() - min(l.available_at)
                        FILTER (WHERE l.status = 'pending' AND l.available_at <= recur.clock()) AS waiting_for,
                    count(*) FILTER (WHERE l.status = 'running') AS running,
                    recur.clock() - min(l.started_at) FILTER (WHERE l.status = 'running') AS running_for
               FROM recur_internal.live_dispatches AS l
              GROUP BY l.owner_id, l.namespace, l.provider) AS d
    ON d.owner_id = a.owner_id AND d.namespace = a.namespace AND d.provider = a.provider;
COMMENT ON VIEW recur.monitoring IS
    'States, counts and lateness of all owners, by namespace and provider, without any content: for level monitor';
COMMENT ON COLUMN recur.monitoring.owner IS 'The role that the actions and dispatches belong to';
COMMENT ON COLUMN recur.monitoring.active IS 'Actions that fire';
COMMENT ON COLUMN recur.monitoring.failing IS 'Actions whose last run has failed, or that could not be dispatched';
COMMENT ON COLUMN recur.monitoring.paused IS 'Actions that are paused';
COMMENT ON COLUMN recur.monitoring.ended IS 'Actions that have ended';
COMMENT ON COLUMN recur.monitoring.overdue IS 'Actions whose next run was due and is not dispatched';
COMMENT ON COLUMN recur.monitoring.overdue_for IS 'How long the most overdue of them has been so';
COMMENT ON COLUMN recur.monitoring.pending IS 'Dispatches that wait to be claimed';
COMMENT ON COLUMN recur.monitoring.waiting_for IS 'How long the oldest of them has waited';
COMMENT ON COLUMN recur.monitoring.running IS 'Dispatches that consumers have claimed';
COMMENT ON COLUMN recur.monitoring.running_for IS 'How long the longest of them has run';
COMMENT ON COLUMN recur.monitoring.completed_runs IS 'How many runs of these actions have been completed so far';
COMMENT ON COLUMN recur.monitoring.failed_runs IS 'How many runs of these actions have failed for good so far';
