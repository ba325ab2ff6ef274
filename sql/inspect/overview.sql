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

-- The overview fits into a terminal of 120 columns.
CREATE FUNCTION recur_internal.fit(value text, width int) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$ SELECT CASE WHEN length(value) > width THEN left(value, width - 1) || '…' ELSE value END $$;
COMMENT ON FUNCTION recur_internal.fit IS 'Internal: a text, cut to a width';

CREATE VIEW recur.overview AS
SELECT recur_internal.fit(a.name, 16) AS name,
       recur_internal.fit(recur.describe(a.schedule), 21) AS schedule,
       recur_internal.fit(a.timezone, 13) AS timezone,
       CASE WHEN a.enabled AND a.error_count > 0 THEN 'failing'
            WHEN a.enabled THEN 'active'
            WHEN a.ended_reason IS NOT NULL THEN 'ended'
            ELSE 'paused' END AS state,
       to_char(a.next_run_at AT TIME ZONE a.timezone,
               CASE WHEN a.next_run_at < clock_timestamp() + interval '6 days' THEN 'Dy HH24:MI' ELSE 'YYYY-MM-DD' END)
       || CASE WHEN a.next_run_at <= clock_timestamp() THEN ', due'
               ELSE ', ' || recur_internal.ago(a.next_run_at - clock_timestamp()) END AS next_run,
       recur_internal.ago(clock_timestamp() - a.last_run_at) AS ran_ago,
       d.status || ' +' || recur_internal.ago(greatest(d.created_at - d.scheduled_at, interval '0')) AS last_outcome
  FROM recur.recurring_actions AS a
  LEFT JOIN recur.dispatches AS d ON d.id = recur_internal.dispatch_id(a.id, a.last_run_at)
 ORDER BY a.next_run_at NULLS LAST, a.name;
COMMENT ON VIEW recur.overview IS 'The state of all actions, on one screen: try \watch 1';
COMMENT ON COLUMN recur.overview.name IS 'The action';
COMMENT ON COLUMN recur.overview.schedule IS 'When the action recurs, in words';
COMMENT ON COLUMN recur.overview.timezone IS 'The time zone of the schedule';
COMMENT ON COLUMN recur.overview.state IS 'active, paused, ended, or failing: the action could not be dispatched';
COMMENT ON COLUMN recur.overview.next_run IS 'The next run, on a clock in that zone, and how far away it is';
COMMENT ON COLUMN recur.overview.ran_ago IS 'How long ago the action last ran';
COMMENT ON COLUMN recur.overview.last_outcome IS 'The status of the last dispatch, and how late it was';
