-- Turning due actions into dispatches, and dispatches that no schedule asked for.

CREATE FUNCTION recur.tick(
    at timestamptz DEFAULT recur.clock(),
    OUT dispatched bigint, OUT skipped bigint, OUT ended bigint, OUT failed bigint
) RETURNS SETOF record
    LANGUAGE c STRICT
    ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'tick_wrapper';
COMMENT ON FUNCTION recur.tick IS
    'Dispatches what is due at this instant, of all owners, as the background worker does by itself; returns how many. '
    'Of a large backlog, one call dispatches about 100,000';

CREATE FUNCTION recur_internal.dispatch_id(action_id uuid, scheduled_at timestamptz) RETURNS uuid
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'dispatch_id_of_wrapper';
COMMENT ON FUNCTION recur_internal.dispatch_id IS 'Internal: the id that the dispatch of an occurrence has';

CREATE FUNCTION recur.trigger(id uuid, payload jsonb DEFAULT NULL, overlap text DEFAULT NULL) RETURNS uuid
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'trigger_wrapper';
COMMENT ON FUNCTION recur.trigger(uuid, jsonb, text) IS
    'Dispatches an action now, even while the action is paused, and returns the id of the dispatch; a payload replaces '
    'the action''s, and overlap its overlap policy. With skip it is refused while a dispatch is unfinished, with '
    'queue_one while one is pending. max_runs counts it only with count_runs completed: then it is refused where no '
    'run is left';

CREATE FUNCTION recur.trigger(
    action text, payload jsonb DEFAULT NULL,
    namespace text DEFAULT NULL, tenant text DEFAULT NULL, subject text DEFAULT NULL, overlap text DEFAULT NULL
) RETURNS uuid
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp
AS $$ SELECT recur.trigger(recur_internal.action_id(action, namespace, tenant, subject), payload, overlap) $$;
COMMENT ON FUNCTION recur.trigger(text, jsonb, text, text, text, text) IS
    'Dispatches an action, by its name or id, now; a payload replaces the action''s, and overlap its overlap policy';

CREATE FUNCTION recur.backfill(id uuid, "from" timestamptz, until timestamptz, "limit" int DEFAULT 1000,
                               beyond_max_runs boolean DEFAULT false)
    RETURNS TABLE (dispatch_id uuid, scheduled_at timestamptz)
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'backfill_wrapper';
COMMENT ON FUNCTION recur.backfill(uuid, timestamptz, timestamptz, int, boolean) IS
    'Dispatches the occurrences between two instants, both included, that have no dispatch: the oldest first, at most '
    '"limit" of them. They count as runs, and no more are dispatched than max_runs leaves, unless beyond_max_runs is '
    'true';

CREATE FUNCTION recur.backfill(
    action text, "from" timestamptz, until timestamptz, "limit" int DEFAULT 1000,
    namespace text DEFAULT NULL, tenant text DEFAULT NULL, subject text DEFAULT NULL,
    beyond_max_runs boolean DEFAULT false
) RETURNS TABLE (dispatch_id uuid, scheduled_at timestamptz)
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT b.dispatch_id, b.scheduled_at
      FROM recur.backfill(recur_internal.action_id(action, namespace, tenant, subject), "from", until, "limit",
                          beyond_max_runs) AS b
$$;
COMMENT ON FUNCTION recur.backfill(text, timestamptz, timestamptz, int, text, text, text, boolean) IS
    'Dispatches the occurrences of an action, by its name or id, that have no dispatch';
