-- Finding actions, and seeing what they did and will do. Nothing here writes.

CREATE FUNCTION recur.id_of(
    name      text,
    namespace text DEFAULT 'default',
    tenant    text DEFAULT 'default',
    subject   text DEFAULT NULL
) RETURNS uuid
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    found_id uuid;
BEGIN
    SELECT d.id INTO found_id FROM recur.definitions AS d
     WHERE d.namespace = namespace AND d.tenant = tenant AND d.name = name
       AND d.subject IS NOT DISTINCT FROM subject AND NOT d.duplicate;
    IF found_id IS NULL THEN
        RAISE no_data_found USING
            MESSAGE = format('no action "%s" in namespace "%s", tenant "%s"%s', name, namespace, tenant,
                             ', subject "' || subject || '"'),
            HINT = 'recur.list() shows the actions that you can see.';
    END IF;
    RETURN found_id;
END
$$;
COMMENT ON FUNCTION recur.id_of IS 'The id of the action with this name; of several that were added under it, the first';

-- The same words in the same form as the index has them, each as a prefix. NULL where there is no word to search for.
CREATE FUNCTION recur._words(search text) RETURNS tsquery
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT to_tsquery('simple', string_agg(quote_literal(word.lexeme) || ':*', ' & '))
      FROM unnest(to_tsvector('simple', search)) AS word
$$;
COMMENT ON FUNCTION recur._words IS 'Internal: a search for words that begin with these';

CREATE FUNCTION recur._matching(
    namespace text, tenant text, enabled boolean, labels jsonb, subject text, owner text, search text, "limit" int,
    after_namespace text, after_tenant text, after_name text, after_id uuid
) RETURNS SETOF uuid
    LANGUAGE c STABLE ROWS 100
    SET search_path = pg_catalog, pg_temp
    -- There is an index for every filter.
    SET enable_seqscan = off
    AS 'MODULE_PATHNAME', 'matching_wrapper';
COMMENT ON FUNCTION recur._matching IS 'Internal: one page of recur.list, of the actions that the caller sees';

CREATE FUNCTION recur.list(
    namespace text    DEFAULT NULL,
    tenant    text    DEFAULT NULL,
    enabled   boolean DEFAULT NULL,
    labels    jsonb   DEFAULT NULL,
    subject   text    DEFAULT NULL,
    owner     text    DEFAULT NULL,
    search    text    DEFAULT NULL,
    "limit"   int     DEFAULT 100,
    after     uuid    DEFAULT NULL
) RETURNS SETOF recur.recurring_actions
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    page recur.definitions;
BEGIN
    PERFORM recur._check_number('limit', list."limit", 1);
    IF list.after IS NOT NULL THEN
        -- Should it have been deleted meanwhile, its event still knows where it stood.
        SELECT place.* INTO page.namespace, page.tenant, page.name, page.id FROM (
            SELECT d.namespace, d.tenant, d.name, d.id FROM recur.definitions AS d WHERE d.id = list.after
            UNION ALL
            SELECT e.detail ->> 'namespace', e.detail ->> 'tenant', e.detail ->> 'name', e.action_id
              FROM recur.events AS e WHERE e.action_id = list.after AND e.kind = 'action.deleted') AS place
         LIMIT 1;
        IF NOT FOUND THEN
            RAISE no_data_found USING
                MESSAGE = format('no action has the id %s', list.after),
                HINT = 'Pass the id of the last action of the page before.';
        END IF;
    END IF;
    RETURN QUERY
    SELECT a.*
      FROM recur._matching(list.namespace, list.tenant, list.enabled, list.labels, list.subject, list.owner,
                           CASE WHEN recur._words(list.search) IS NOT NULL THEN list.search END, list."limit", page.namespace, page.tenant, page.name, page.id)
           WITH ORDINALITY AS m (id, place)
      JOIN recur.recurring_actions AS a ON a.id = m.id
     ORDER BY m.place;
END
$$;
COMMENT ON FUNCTION recur.list IS
    'Actions by namespace, tenant, enabled, labels (all of those given), subject, owner and words of name and description; after is the id of the last one of the page before';

CREATE FUNCTION recur.history(
    id      uuid,
    "limit" int         DEFAULT 20,
    before  timestamptz DEFAULT NULL
) RETURNS SETOF recur.dispatches
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM recur._check_number('limit', history."limit", 1);
    RETURN QUERY
    SELECT d.* FROM recur.dispatches AS d
     WHERE d.action_id = history.id AND (history.before IS NULL OR d.scheduled_at < history.before)
     ORDER BY d.scheduled_at DESC, d.id DESC
     LIMIT history."limit";
    IF NOT FOUND AND history.before IS NULL THEN
        PERFORM recur.get(history.id);
    END IF;
END
$$;
COMMENT ON FUNCTION recur.history IS 'The dispatches of an action, newest first; those of a deleted one too';

CREATE FUNCTION recur.preview(id uuid, "from" timestamptz DEFAULT now(), count int DEFAULT 10)
    RETURNS TABLE (occurrence timestamptz, local_time timestamp, note text)
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    action recur.recurring_actions := recur.get(preview.id);
BEGIN
    RETURN QUERY
    SELECT p.occurrence, p.local_time, p.note
      FROM recur.preview(action.schedule, action.timezone, preview."from", preview.count, action.starts_at, action.ends_at,
                         NULL, action.on_dst_gap, action.on_dst_fold) AS p
     -- What is left of max_runs.
     LIMIT action.max_runs - action.run_count;
END
$$;
COMMENT ON FUNCTION recur.preview(uuid, timestamptz, int) IS
    'The next occurrences of an action strictly after "from", paused or not; no more than max_runs leaves it';

CREATE FUNCTION recur.describe(id uuid) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    action recur.recurring_actions := recur.get(describe.id);
BEGIN
    RETURN recur.describe(action.schedule, action.timezone);
END
$$;
COMMENT ON FUNCTION recur.describe(uuid) IS 'The schedule of an action in plain English';

CREATE FUNCTION recur.compare(id uuid, changes jsonb, count int DEFAULT 10)
    RETURNS TABLE (number bigint, current_occurrence timestamptz, new_occurrence timestamptz, note text)
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    action recur.recurring_actions := recur.get(compare.id);
    wanted recur.recurring_actions := recur._changed(action, changes);
BEGIN
    RETURN QUERY
    SELECT coalesce(c.number, n.number), c.occurrence, n.occurrence,
           CASE WHEN c.occurrence = n.occurrence THEN 'same'
                WHEN c.occurrence IS NULL THEN 'only with the change'
                WHEN n.occurrence IS NULL THEN 'not any more'
                WHEN n.occurrence > c.occurrence THEN format('%s later', n.occurrence - c.occurrence)
                ELSE format('%s earlier', c.occurrence - n.occurrence) END
      FROM (SELECT * FROM recur.preview(action.schedule, action.timezone, now(), compare.count, action.starts_at,
                                        action.ends_at, NULL, action.on_dst_gap, action.on_dst_fold)
                     WITH ORDINALITY AS p (occurrence, local_time, note, number)
             WHERE (p.number <= action.max_runs - action.run_count) IS NOT FALSE) AS c
      FULL JOIN
           (SELECT * FROM recur.preview(wanted.schedule, wanted.timezone, now(), compare.count, wanted.starts_at,
                                        wanted.ends_at, NULL, wanted.on_dst_gap, wanted.on_dst_fold)
                     WITH ORDINALITY AS p (occurrence, local_time, note, number)
             WHERE (p.number <= wanted.max_runs - wanted.run_count) IS NOT FALSE) AS n ON n.number = c.number
     ORDER BY 1;
END
$$;
COMMENT ON FUNCTION recur.compare IS
    'The next occurrences of an action as it is and as recur.update would make it, side by side; changes nothing';

CREATE FUNCTION recur._occurrences_by_minute(
    schedule text, timezone text, "from" timestamptz, until timestamptz, starts_at timestamptz, ends_at timestamptz,
    max_runs int, on_dst_gap text, on_dst_fold text
) RETURNS TABLE (minute timestamptz, count bigint)
    LANGUAGE c STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'occurrences_by_minute_wrapper';
COMMENT ON FUNCTION recur._occurrences_by_minute IS 'Internal: how many occurrences each minute of a span has';

CREATE FUNCTION recur._counts_from_start(schedule text) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'counts_from_start_wrapper';
COMMENT ON FUNCTION recur._counts_from_start IS 'Internal: do the occurrences of this schedule depend on starts_at?';

CREATE FUNCTION recur.forecast("from" timestamptz DEFAULT now(), until timestamptz DEFAULT now() + interval '1 day')
    RETURNS TABLE (minute timestamptz, dispatches bigint)
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF forecast.until < forecast."from" OR forecast.until > forecast."from" + interval '31 days' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid until "%s": must lie within 31 days after "from", which is %s', forecast.until, forecast."from");
    END IF;
    -- A million actions share a few schedules: each is walked through once.
    RETURN QUERY
    SELECT m.minute, sum(m.count * g.actions)::bigint
      FROM (SELECT a.schedule, a.timezone, a.on_dst_gap, a.on_dst_fold, a.ends_at,
                   CASE WHEN recur._counts_from_start(a.schedule) THEN a.starts_at
                        ELSE greatest(a.starts_at, forecast."from") END AS starts_at,
                   greatest(a.next_run_at - interval '1 microsecond', forecast."from") AS first_after,
                   (a.max_runs - a.run_count)::int AS runs_left,
                   count(*) AS actions
              FROM recur.recurring_actions AS a
             WHERE a.enabled AND a.next_run_at <= forecast.until
             GROUP BY 1, 2, 3, 4, 5, 6, 7, 8) AS g,
           recur._occurrences_by_minute(g.schedule, g.timezone, g.first_after, forecast.until, g.starts_at, g.ends_at,
                                        g.runs_left, g.on_dst_gap, g.on_dst_fold) AS m
     GROUP BY m.minute
     ORDER BY m.minute;
END
$$;
COMMENT ON FUNCTION recur.forecast IS
    'How many dispatches each minute brings, over all enabled actions that you can see; minutes without one are left out';

CREATE FUNCTION recur._dispatch_id(action_id uuid, scheduled_at timestamptz) RETURNS uuid
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'dispatch_id_wrapper';
COMMENT ON FUNCTION recur._dispatch_id IS 'Internal: the id that the dispatch of an occurrence has';

-- An interval as people say it.
CREATE FUNCTION recur._ago(span interval) RETURNS text
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
COMMENT ON FUNCTION recur._ago IS 'Internal: the length of an interval in one unit';

-- Cut so that it stands in a terminal of 120 columns.
CREATE FUNCTION recur._fit(value text, width int) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$ SELECT CASE WHEN length(value) > width THEN left(value, width - 1) || '…' ELSE value END $$;
COMMENT ON FUNCTION recur._fit IS 'Internal: a text, cut to a width';

CREATE VIEW recur.overview WITH (security_invoker = true) AS
SELECT recur._fit(a.name, 16) AS name,
       recur._fit(recur.describe(a.schedule), 21) AS schedule,
       recur._fit(a.timezone, 13) AS timezone,
       CASE WHEN a.enabled AND a.error_count > 0 THEN 'failing'
            WHEN a.enabled THEN 'active'
            WHEN a.ended_reason IS NOT NULL THEN 'ended'
            ELSE 'paused' END AS state,
       to_char(a.next_run_at AT TIME ZONE a.timezone,
               CASE WHEN a.next_run_at < clock_timestamp() + interval '6 days' THEN 'Dy HH24:MI' ELSE 'YYYY-MM-DD' END)
       || CASE WHEN a.next_run_at <= clock_timestamp() THEN ', due'
               ELSE ', ' || recur._ago(a.next_run_at - clock_timestamp()) END AS next_run,
       recur._ago(clock_timestamp() - a.last_run_at) AS ran_ago,
       d.status || ' +' || recur._ago(greatest(d.created_at - d.scheduled_at, interval '0')) AS last_outcome
  FROM recur.recurring_actions AS a
  LEFT JOIN recur.dispatches AS d ON d.id = recur._dispatch_id(a.id, a.last_run_at)
 ORDER BY a.next_run_at NULLS LAST, a.name;
COMMENT ON VIEW recur.overview IS 'How everything is doing, on one screen: try \watch 1';
COMMENT ON COLUMN recur.overview.name IS 'The action';
COMMENT ON COLUMN recur.overview.schedule IS 'When it recurs, in words';
COMMENT ON COLUMN recur.overview.timezone IS 'The time zone of the schedule';
COMMENT ON COLUMN recur.overview.state IS 'active, paused, ended, or failing: it could not be evaluated';
COMMENT ON COLUMN recur.overview.next_run IS 'The next run, on a clock in that zone, and how far away it is';
COMMENT ON COLUMN recur.overview.ran_ago IS 'How long ago it ran last';
COMMENT ON COLUMN recur.overview.last_outcome IS 'What has become of that dispatch, and how late it was';
