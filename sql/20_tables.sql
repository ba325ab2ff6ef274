-- What is stored.
--
-- An action is two rows: recur.definitions holds what people wrote, recur.timers what changes with every run. The
-- narrow timer is all that a dispatch rewrites. Users see both as one: recur.recurring_actions.

CREATE TABLE recur.definitions (
    id           uuid           NOT NULL DEFAULT gen_random_uuid(),
    name         text           NOT NULL,
    namespace    text           NOT NULL DEFAULT 'default',
    tenant       text           NOT NULL DEFAULT 'default',
    owner        name           NOT NULL DEFAULT current_user,
    schedule     recur.schedule NOT NULL,
    timezone     recur.timezone NOT NULL DEFAULT recur._canonical_timezone(NULL),
    starts_at    timestamptz    NOT NULL DEFAULT clock_timestamp(),
    ends_at      timestamptz,
    max_runs     int,
    on_dst_gap   text           NOT NULL DEFAULT 'roll_forward',
    on_dst_fold  text           NOT NULL DEFAULT 'first',
    provider     text           NOT NULL,
    action_type  text           NOT NULL,
    payload      jsonb          NOT NULL DEFAULT '{}',
    metadata     jsonb          NOT NULL DEFAULT '{}',
    max_attempts int            NOT NULL DEFAULT 3,
    created_at   timestamptz    NOT NULL DEFAULT now(),
    updated_at   timestamptz    NOT NULL DEFAULT now(),
    CONSTRAINT definitions_pkey PRIMARY KEY (id),
    CONSTRAINT definitions_max_runs_positive CHECK (max_runs > 0),
    CONSTRAINT definitions_max_attempts_positive CHECK (max_attempts > 0),
    CONSTRAINT definitions_on_dst_gap_known CHECK (on_dst_gap IN ('roll_forward', 'skip')),
    CONSTRAINT definitions_on_dst_fold_known CHECK (on_dst_fold IN ('first', 'second', 'both')),
    CONSTRAINT definitions_ends_after_start CHECK (ends_at >= starts_at)
);
CREATE UNIQUE INDEX definitions_identity ON recur.definitions (namespace, tenant, name);

COMMENT ON TABLE recur.definitions IS 'What people wrote of each action; read recur.recurring_actions instead';
COMMENT ON COLUMN recur.definitions.id IS 'Identifies the action for life';
COMMENT ON COLUMN recur.definitions.name IS 'Unique within namespace and tenant';
COMMENT ON COLUMN recur.definitions.namespace IS 'A part of the application';
COMMENT ON COLUMN recur.definitions.tenant IS 'A customer of the application';
COMMENT ON COLUMN recur.definitions.owner IS 'The role that created the action';
COMMENT ON COLUMN recur.definitions.schedule IS 'When it recurs, in canonical form; recur.describe says it in words';
COMMENT ON COLUMN recur.definitions.timezone IS 'The time zone that the schedule is read in';
COMMENT ON COLUMN recur.definitions.starts_at IS 'Nothing fires before it; intervals and rules are counted from it';
COMMENT ON COLUMN recur.definitions.ends_at IS 'Nothing that is scheduled later fires';
COMMENT ON COLUMN recur.definitions.max_runs IS 'The action ends after so many runs';
COMMENT ON COLUMN recur.definitions.on_dst_gap IS 'A local time that does not exist: roll_forward or skip';
COMMENT ON COLUMN recur.definitions.on_dst_fold IS 'A local time that exists twice: first, second or both';
COMMENT ON COLUMN recur.definitions.provider IS 'Who performs it: consumers choose their dispatches by it';
COMMENT ON COLUMN recur.definitions.action_type IS 'What is to be done';
COMMENT ON COLUMN recur.definitions.payload IS 'The arguments: a JSON object, copied into each dispatch';
COMMENT ON COLUMN recur.definitions.metadata IS 'More strings for the consumer, copied into each dispatch';
COMMENT ON COLUMN recur.definitions.max_attempts IS 'How often a dispatch may be claimed before it has failed';
COMMENT ON COLUMN recur.definitions.created_at IS 'When the action was created';
COMMENT ON COLUMN recur.definitions.updated_at IS 'When the definition was last changed';

CREATE TABLE recur.timers (
    action_id     uuid    NOT NULL,
    enabled       boolean NOT NULL DEFAULT true,
    next_run_at   timestamptz,
    last_run_at   timestamptz,
    run_count     bigint  NOT NULL DEFAULT 0,
    error_count   int     NOT NULL DEFAULT 0,
    last_error_at timestamptz,
    last_error    text,
    paused_reason text,
    ended_reason  text,
    CONSTRAINT timers_pkey PRIMARY KEY (action_id),
    CONSTRAINT timers_action FOREIGN KEY (action_id) REFERENCES recur.definitions (id) ON DELETE CASCADE,
    CONSTRAINT timers_disabled_has_no_next CHECK (enabled OR next_run_at IS NULL)
);
CREATE INDEX timers_due ON recur.timers (next_run_at) WHERE next_run_at IS NOT NULL;

COMMENT ON TABLE recur.timers IS 'What changes with every run of an action; read recur.recurring_actions instead';
COMMENT ON COLUMN recur.timers.action_id IS 'The action';
COMMENT ON COLUMN recur.timers.enabled IS 'Does it fire? Not while paused, nor after its end';
COMMENT ON COLUMN recur.timers.next_run_at IS 'The earliest occurrence that has not been dispatched; NULL while not enabled';
COMMENT ON COLUMN recur.timers.last_run_at IS 'The occurrence that was dispatched last';
COMMENT ON COLUMN recur.timers.run_count IS 'How many occurrences have been dispatched';
COMMENT ON COLUMN recur.timers.error_count IS 'How often the action could not be evaluated';
COMMENT ON COLUMN recur.timers.last_error_at IS 'When that happened last';
COMMENT ON COLUMN recur.timers.last_error IS 'What the error was';
COMMENT ON COLUMN recur.timers.paused_reason IS 'What recur.pause was told';
COMMENT ON COLUMN recur.timers.ended_reason IS 'Why it ended: exhausted (max_runs), expired (ends_at), no_next (the schedule has no more)';

CREATE FUNCTION recur._timers_changed() RETURNS trigger
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'timers_changed_wrapper';
COMMENT ON FUNCTION recur._timers_changed IS 'Internal: wakes the dispatcher when the transaction commits';

CREATE TRIGGER wake_dispatcher
    AFTER INSERT OR DELETE OR UPDATE OF next_run_at ON recur.timers
    FOR EACH STATEMENT EXECUTE FUNCTION recur._timers_changed();

CREATE VIEW recur.recurring_actions WITH (security_invoker = true) AS
SELECT d.id, d.name, d.namespace, d.tenant, d.owner,
       d.schedule, d.timezone, d.starts_at, d.ends_at, d.max_runs, d.on_dst_gap, d.on_dst_fold,
       d.provider, d.action_type, d.payload, d.metadata, d.max_attempts,
       t.enabled, t.paused_reason, t.ended_reason,
       t.next_run_at, t.last_run_at, t.run_count, t.error_count, t.last_error, t.last_error_at,
       d.created_at, d.updated_at
  FROM recur.definitions AS d
  JOIN recur.timers AS t ON t.action_id = d.id;
COMMENT ON VIEW recur.recurring_actions IS 'All actions: what they do, when, and how they are doing';

CREATE TABLE recur.dispatches (
    id               uuid        NOT NULL,
    action_id        uuid,
    scheduled_at     timestamptz NOT NULL,
    trigger          text        NOT NULL,
    namespace        text        NOT NULL DEFAULT 'default',
    tenant           text        NOT NULL DEFAULT 'default',
    owner            name        NOT NULL DEFAULT current_user,
    provider         text        NOT NULL,
    action_type      text        NOT NULL,
    payload          jsonb       NOT NULL DEFAULT '{}',
    metadata         jsonb       NOT NULL DEFAULT '{}',
    status           text        NOT NULL DEFAULT 'pending',
    attempt          int         NOT NULL DEFAULT 0,
    max_attempts     int         NOT NULL DEFAULT 3,
    available_at     timestamptz NOT NULL DEFAULT now(),
    claimed_by       text,
    lease_expires_at timestamptz,
    started_at       timestamptz,
    finished_at      timestamptz,
    result           jsonb,
    error            text,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT dispatches_pkey PRIMARY KEY (id),
    CONSTRAINT dispatches_trigger_known CHECK (trigger IN ('schedule', 'manual', 'backfill', 'enqueue', 'webhook')),
    CONSTRAINT dispatches_status_known CHECK (status IN ('pending', 'running', 'completed', 'failed', 'cancelled'))
);
CREATE INDEX dispatches_claimable ON recur.dispatches (available_at) WHERE status = 'pending';

COMMENT ON TABLE recur.dispatches IS 'One row for each occurrence that came due: claim it, run it, complete it';
COMMENT ON COLUMN recur.dispatches.id IS 'A function of action and occurrence: safe as an idempotency key, and sorted by time';
COMMENT ON COLUMN recur.dispatches.action_id IS 'The action it belongs to; it may have been deleted since';
COMMENT ON COLUMN recur.dispatches.scheduled_at IS 'The occurrence';
COMMENT ON COLUMN recur.dispatches.trigger IS 'What caused it: schedule, manual, backfill, enqueue or webhook';
COMMENT ON COLUMN recur.dispatches.namespace IS 'As of the action';
COMMENT ON COLUMN recur.dispatches.tenant IS 'As of the action';
COMMENT ON COLUMN recur.dispatches.owner IS 'As of the action';
COMMENT ON COLUMN recur.dispatches.provider IS 'Who shall perform it';
COMMENT ON COLUMN recur.dispatches.action_type IS 'What is to be done';
COMMENT ON COLUMN recur.dispatches.payload IS 'The arguments, as they were when it came due';
COMMENT ON COLUMN recur.dispatches.metadata IS 'The action''s, plus _recurring_dispatch and _recurring_id';
COMMENT ON COLUMN recur.dispatches.status IS 'pending, running, completed, failed or cancelled';
COMMENT ON COLUMN recur.dispatches.attempt IS 'How often it has been claimed; a report must name the attempt that it is about';
COMMENT ON COLUMN recur.dispatches.max_attempts IS 'How often it may be claimed';
COMMENT ON COLUMN recur.dispatches.available_at IS 'When it may be claimed';
COMMENT ON COLUMN recur.dispatches.claimed_by IS 'The consumer of the current attempt';
COMMENT ON COLUMN recur.dispatches.lease_expires_at IS 'Until when the consumer may work on it';
COMMENT ON COLUMN recur.dispatches.started_at IS 'When the current attempt was claimed';
COMMENT ON COLUMN recur.dispatches.finished_at IS 'When it was completed, failed for good, or cancelled';
COMMENT ON COLUMN recur.dispatches.result IS 'What the consumer reported';
COMMENT ON COLUMN recur.dispatches.error IS 'What went wrong last';
COMMENT ON COLUMN recur.dispatches.created_at IS 'When it was dispatched';

-- A dump carries the rows.
SELECT pg_catalog.pg_extension_config_dump('recur.definitions', '');
SELECT pg_catalog.pg_extension_config_dump('recur.timers', '');
SELECT pg_catalog.pg_extension_config_dump('recur.dispatches', '');
