-- Storing and scheduling journeys, and runs that met a state which waits for input.

CREATE FUNCTION recur.set_journey(INOUT name text, INOUT version text, states jsonb,
                                  OUT changed boolean, OUT schedules bigint)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'set_journey_wrapper';
COMMENT ON FUNCTION recur.set_journey IS
    'Stores a journey: its states by id, each with its type and the states that may follow it. A change that would '
    'let a schedule of the journey reach an interactive state, or takes away the state in which one starts, is refused';

CREATE FUNCTION recur.drop_journey(INOUT name text, INOUT version text)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'drop_journey_wrapper';
COMMENT ON FUNCTION recur.drop_journey IS 'Deletes a journey that no action schedules';

-- NULL means the default. The arguments that are columns of an action mean what they mean in recur.create: "interval"
-- is column schedule, start_at is starts_at, and start is start_state.
CREATE FUNCTION recur.schedule_journey(
    journey         text,
    start           text,
    start_at        timestamptz DEFAULT NULL,
    "interval"      text        DEFAULT NULL,
    max_runs        int         DEFAULT NULL,
    subject         text        DEFAULT NULL,
    context         jsonb       DEFAULT NULL,
    on_existing     text        DEFAULT NULL,
    ends_at         timestamptz DEFAULT NULL,
    count_runs      text        DEFAULT NULL,
    journey_version text        DEFAULT NULL,
    timezone        text        DEFAULT NULL,
    namespace       text        DEFAULT NULL,
    tenant          text        DEFAULT NULL,
    provider        text        DEFAULT NULL,
    action_type     text        DEFAULT NULL,
    payload         jsonb       DEFAULT NULL,
    description     text        DEFAULT NULL,
    labels          jsonb       DEFAULT NULL,
    metadata        jsonb       DEFAULT NULL,
    misfire         text        DEFAULT NULL,
    overlap         text        DEFAULT NULL,
    jitter          interval    DEFAULT NULL,
    max_attempts    int         DEFAULT NULL,
    retry_backoff   jsonb       DEFAULT NULL,
    lease           interval    DEFAULT NULL,
    priority        int         DEFAULT NULL,
    contact         text        DEFAULT NULL,
    enabled         boolean     DEFAULT NULL
) RETURNS uuid
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'schedule_journey_wrapper';
COMMENT ON FUNCTION recur.schedule_journey IS
    'Creates an action whose runs go through a journey from the state start on, and returns its id. It has an '
    '"interval", which is any schedule, a bound (max_runs, ends_at or both) and a context. Journey, version, start and '
    'subject identify it; where there is one, on_existing says what happens: fail (the default), upsert or addAnother. '
    'Refused where a run could reach an interactive state: the error has the way to it';

CREATE FUNCTION recur.fail_interactive(INOUT id uuid, INOUT attempt int, state text,
                                       OUT status text, OUT available_at timestamptz, OUT cancel_requested boolean)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'fail_interactive_wrapper';
COMMENT ON FUNCTION recur.fail_interactive IS
    'Reports that a run has met a state that waits for input: it has failed for good, with code RC010, and is counted '
    'in interactive_count';
