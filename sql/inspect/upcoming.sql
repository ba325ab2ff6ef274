-- What actions will do. No function here writes.

-- run_count counts dispatched occurrences, including those that were dispatched ahead of their time and are still to
-- come. Where completed runs count, unfinished dispatches hold a place.
CREATE FUNCTION recur_internal.runs_left(id uuid, max_runs int, "from" timestamptz) RETURNS bigint
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT greatest(CASE a.count_runs
                        WHEN 'completed' THEN
                            runs_left.max_runs - a.completed_count
                            - (SELECT count(*) FROM recur.dispatches AS d
                                WHERE d.action_id = a.id AND d.status IN ('pending', 'running')
                                  AND (d.trigger <> 'schedule' OR d.scheduled_at <= runs_left."from"))
                        ELSE runs_left.max_runs - a.run_count
                             + (SELECT count(*) FROM recur.dispatches AS d
                                 WHERE d.action_id = a.id AND d.trigger = 'schedule'
                                   AND d.scheduled_at > runs_left."from")
                        END, 0)
      FROM recur.recurring_actions AS a
     WHERE a.id = runs_left.id AND runs_left.max_runs IS NOT NULL
$$;
COMMENT ON FUNCTION recur_internal.runs_left IS
    'Internal: how many runs an action has left after an instant if max_runs were this; NULL for any number';

-- The arguments are of the same types as those of the form that takes a schedule: otherwise a call with literals alone
-- would be ambiguous.
CREATE FUNCTION recur.preview(
    id       uuid,
    timezone text        DEFAULT NULL,
    "from"   timestamptz DEFAULT recur.clock(),
    count    int         DEFAULT 10
) RETURNS TABLE (occurrence timestamptz, local_time timestamp, note text)
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    action    recur.recurring_actions;
    known     uuid := recur_internal.action_id(preview.id::text, NULL, NULL, NULL);
    zone      text := recur_internal.canonical_timezone(coalesce(preview.timezone, 'UTC'));
    shown     int := recur_internal.checked_count(preview.count);
    start     timestamptz := recur_internal.checked_instant('from', preview."from");
    runs_left bigint;
    last_run  timestamptz;
BEGIN
    SELECT a.* INTO action FROM recur.recurring_actions AS a WHERE a.id = known;
    zone := CASE WHEN preview.timezone IS NULL THEN action.timezone ELSE zone END;
    runs_left := recur_internal.runs_left(action.id, action.max_runs, start);
    -- The last run has no next one, and so no note that the next one is late.
    IF runs_left <= shown THEN
        SELECT max(p.occurrence) INTO last_run
          FROM recur.preview(action.schedule, zone, start,
                             runs_left::int, action.starts_at, action.ends_at, NULL, action.on_dst_gap,
                             action.on_dst_fold) AS p;
    END IF;
    RETURN QUERY
    SELECT p.occurrence, p.local_time, p.note
      FROM recur.preview(action.schedule, zone, start, shown,
                         action.starts_at, least(action.ends_at, last_run), NULL, action.on_dst_gap,
                         action.on_dst_fold) AS p
     LIMIT runs_left;
END
$$;
COMMENT ON FUNCTION recur.preview(uuid, text, timestamptz, int) IS
    'The next occurrences of an action strictly after "from", paused or not; no more than max_runs leaves it. With a '
    'timezone, as if the action had that zone';

CREATE FUNCTION recur.describe(id uuid, style text DEFAULT NULL) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    action recur.recurring_actions;
    known  uuid := recur_internal.action_id(describe.id::text, NULL, NULL, NULL);
BEGIN
    SELECT a.* INTO action FROM recur.recurring_actions AS a WHERE a.id = known;
    RETURN recur_internal.describe_within(action.schedule, action.timezone, describe.style, action.starts_at,
                                          action.ends_at, action.max_runs);
END
$$;
COMMENT ON FUNCTION recur.describe(uuid, text) IS
    'The schedule of an action in plain English, with its zone and bounds; style is 24h (at 09:00), the default, or '
    '12h (at 9:00 AM)';

-- The occurrences of an action, and of the schedule that a change would give it.
CREATE FUNCTION recur_internal.compared(
    id uuid, count int, schedule text, timezone text, starts_at timestamptz, ends_at timestamptz, max_runs int,
    on_dst_gap text, on_dst_fold text
) RETURNS TABLE (number bigint, current_occurrence timestamptz, new_occurrence timestamptz, note text)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(c.number, n.number), c.occurrence, n.occurrence,
           CASE WHEN c.occurrence = n.occurrence THEN 'same'
                WHEN c.occurrence IS NULL THEN 'only with the change'
                WHEN n.occurrence IS NULL THEN 'not any more'
                WHEN n.occurrence > c.occurrence THEN format('%s later', n.occurrence - c.occurrence)
                ELSE format('%s earlier', c.occurrence - n.occurrence) END
      FROM recur.preview(compared.id, count => compared.count)
           WITH ORDINALITY AS c (occurrence, local_time, note, number)
      FULL JOIN (SELECT p.occurrence, p.number
                   FROM recur.preview(compared.schedule, compared.timezone, recur.clock(), compared.count,
                                      compared.starts_at, compared.ends_at, NULL, compared.on_dst_gap,
                                      compared.on_dst_fold)
                        WITH ORDINALITY AS p (occurrence, local_time, note, number)
                  LIMIT recur_internal.runs_left(compared.id, compared.max_runs, recur.clock())) AS n
         ON n.number = c.number
     ORDER BY 1
$$;
COMMENT ON FUNCTION recur_internal.compared IS
    'Internal: the next occurrences of an action beside those of another schedule';

CREATE FUNCTION recur.compare(id uuid, changes jsonb, count int DEFAULT 10)
    RETURNS TABLE (number bigint, current_occurrence timestamptz, new_occurrence timestamptz, note text)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT c.*
      FROM recur_internal.with_changes(compare.id, compare.changes) AS w,
           recur_internal.compared(compare.id, recur_internal.checked_count(compare.count), w.schedule, w.timezone,
                                   w.starts_at, w.ends_at, w.max_runs, w.on_dst_gap, w.on_dst_fold) AS c
$$;
COMMENT ON FUNCTION recur.compare(uuid, jsonb, int) IS
    'The next occurrences of an action as it is and as recur.update would make it, side by side; changes nothing';

CREATE FUNCTION recur.compare(
    action text, changes jsonb, count int DEFAULT 10,
    namespace text DEFAULT NULL, tenant text DEFAULT NULL, subject text DEFAULT NULL
) RETURNS TABLE (number bigint, current_occurrence timestamptz, new_occurrence timestamptz, note text)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT c.*
      FROM recur_internal.action_id(compare.action, compare.namespace, compare.tenant, compare.subject) AS known (id),
           recur_internal.with_changes(known.id, compare.changes) AS w,
           recur_internal.compared(known.id, recur_internal.checked_count(compare.count), w.schedule, w.timezone,
                                   w.starts_at, w.ends_at, w.max_runs, w.on_dst_gap, w.on_dst_fold) AS c
$$;
COMMENT ON FUNCTION recur.compare(text, jsonb, int, text, text, text) IS
    'The next occurrences of the action with this id or name, as it is and as recur.update would make it';

CREATE FUNCTION recur_internal.occurrences_by_minute(
    schedule text, timezone text, "from" timestamptz, until timestamptz, starts_at timestamptz, ends_at timestamptz,
    max_runs int, on_dst_gap text, on_dst_fold text
) RETURNS TABLE (minute timestamptz, count bigint)
    LANGUAGE c STABLE PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'occurrences_by_minute_wrapper';
COMMENT ON FUNCTION recur_internal.occurrences_by_minute IS 'Internal: how many occurrences each minute of a span has';

CREATE FUNCTION recur_internal.counts_from_start(schedule text) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'counts_from_start_wrapper';
COMMENT ON FUNCTION recur_internal.counts_from_start IS
    'Internal: do the occurrences of this schedule depend on starts_at?';

CREATE FUNCTION recur.forecast("from" timestamptz DEFAULT recur.clock(),
                               until timestamptz DEFAULT recur.clock() + interval '1 day')
    RETURNS TABLE (minute timestamptz, dispatches bigint)
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF forecast.until < forecast."from" OR forecast.until > forecast."from" + interval '31 days' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid until "%s": must lie within 31 days after "from", which is %s',
                             forecast.until, forecast."from");
    END IF;
    -- A million actions share a few schedules: the occurrences of each are counted once.
    RETURN QUERY
    SELECT m.minute, sum(m.count * g.actions)::bigint
      FROM (SELECT a.schedule, a.timezone, a.on_dst_gap, a.on_dst_fold, a.ends_at,
                   CASE WHEN recur_internal.counts_from_start(a.schedule) THEN a.starts_at
                        ELSE greatest(a.starts_at, forecast."from") END AS starts_at,
                   greatest(a.next_run_at - interval '1 microsecond', forecast."from") AS first_after,
                   CASE WHEN a.horizon IS NULL AND a.horizon_count IS NULL AND a.count_runs = 'dispatched'
                        THEN a.max_runs - a.run_count
                        ELSE recur_internal.runs_left(a.id, a.max_runs, forecast."from") END::int AS runs_left,
                   count(*) AS actions
              FROM recur.recurring_actions AS a
             WHERE a.enabled AND a.next_run_at <= forecast.until
             GROUP BY 1, 2, 3, 4, 5, 6, 7, 8) AS g,
           recur_internal.occurrences_by_minute(g.schedule, g.timezone, g.first_after, forecast.until, g.starts_at,
                                                g.ends_at, g.runs_left, g.on_dst_gap, g.on_dst_fold) AS m
     GROUP BY m.minute
     ORDER BY m.minute;
END
$$;
COMMENT ON FUNCTION recur.forecast IS
    'How many dispatches each minute brings, over all enabled actions that you can see; minutes without one are left '
    'out';
