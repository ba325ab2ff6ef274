-- What is stored of an action.
--
-- An action is three rows: recur.definitions holds what people wrote, recur.timers what every run changes, and
-- recur.progress what consumers change. Each party rewrites only its own row, which keeps a run cheap and the
-- parties out of each other's way. Users see the three as one, recur.recurring_actions, and write only there:
-- what happens then is in 30_writing.sql.

CREATE TABLE recur.definitions (
    id             uuid           NOT NULL DEFAULT gen_random_uuid(),
    name           text           NOT NULL,
    namespace      text           NOT NULL DEFAULT 'default',
    tenant         text           NOT NULL DEFAULT 'default',
    subject        text,
    duplicate      boolean        NOT NULL DEFAULT false,
    owner          text           NOT NULL DEFAULT current_user,
    description    text,
    labels         jsonb          NOT NULL DEFAULT '{}',
    schedule       recur.schedule NOT NULL,
    timezone       recur.timezone NOT NULL DEFAULT recur._canonical_timezone(NULL),
    starts_at      timestamptz    NOT NULL DEFAULT clock_timestamp(),
    ends_at        timestamptz,
    max_runs       int,
    on_dst_gap     text           NOT NULL DEFAULT 'roll_forward',
    on_dst_fold    text           NOT NULL DEFAULT 'first',
    provider       text           NOT NULL,
    action_type    text           NOT NULL,
    payload        jsonb          NOT NULL DEFAULT '{}',
    metadata       jsonb          NOT NULL DEFAULT '{}',
    dedup_key      text,
    misfire        text           NOT NULL DEFAULT 'once',
    misfire_grace  interval,
    catchup_limit  int            NOT NULL DEFAULT 100,
    overlap        text           NOT NULL DEFAULT 'allow',
    jitter         interval       NOT NULL DEFAULT '0',
    horizon        interval,
    horizon_count  int,
    max_attempts   int            NOT NULL DEFAULT 3,
    retry_backoff  jsonb          NOT NULL DEFAULT '{"base": "30 seconds", "factor": 2, "cap": "1 hour"}',
    lease          interval       NOT NULL DEFAULT '5 minutes',
    priority       int            NOT NULL DEFAULT 0,
    lock_group     text,
    notify_channel text,
    primary_agent  text,
    fallback_agent text,
    contact        text,
    mute           boolean        NOT NULL DEFAULT false,
    mute_interval  interval,
    keep_history   text           NOT NULL DEFAULT 'all',
    created_at     timestamptz    NOT NULL DEFAULT now(),
    updated_at     timestamptz    NOT NULL DEFAULT now(),
    CONSTRAINT definitions_pkey PRIMARY KEY (id),
    CONSTRAINT definitions_max_runs_positive CHECK (max_runs > 0),
    CONSTRAINT definitions_ends_after_start CHECK (ends_at >= starts_at),
    CONSTRAINT definitions_on_dst_gap_known CHECK (on_dst_gap IN ('roll_forward', 'skip')),
    CONSTRAINT definitions_on_dst_fold_known CHECK (on_dst_fold IN ('first', 'second', 'both')),
    CONSTRAINT definitions_misfire_known CHECK (misfire IN ('once', 'skip', 'all')),
    CONSTRAINT definitions_overlap_known CHECK (overlap IN ('allow', 'skip', 'queue_one', 'cancel_previous')),
    CONSTRAINT definitions_keep_history_known CHECK (keep_history IN ('all', 'failures', 'none')),
    CONSTRAINT definitions_catchup_limit_positive CHECK (catchup_limit > 0),
    CONSTRAINT definitions_horizon_count_positive CHECK (horizon_count > 0),
    CONSTRAINT definitions_max_attempts_positive CHECK (max_attempts > 0)
);
-- One action of a name, but for those that were added on purpose beside it.
CREATE UNIQUE INDEX definitions_identity ON recur.definitions (namespace, tenant, name, subject)
    NULLS NOT DISTINCT WHERE NOT duplicate;
-- One for each way in which recur.list is asked.
CREATE INDEX definitions_listed ON recur.definitions (namespace, tenant, name, id);
CREATE INDEX definitions_by_tenant ON recur.definitions (tenant, namespace, name, id);
CREATE INDEX definitions_by_subject ON recur.definitions (subject) WHERE subject IS NOT NULL;
CREATE INDEX definitions_by_owner ON recur.definitions (owner);
CREATE INDEX definitions_by_label ON recur.definitions USING gin (labels jsonb_path_ops);
CREATE INDEX definitions_by_word ON recur.definitions
    USING gin (to_tsvector('simple', name || ' ' || coalesce(description, '')));

COMMENT ON TABLE recur.definitions IS 'What people wrote of each action; read and write recur.recurring_actions instead';
COMMENT ON COLUMN recur.definitions.id IS 'Identifies the action for life';
COMMENT ON COLUMN recur.definitions.name IS 'With namespace, tenant and subject, the action''s identity';
COMMENT ON COLUMN recur.definitions.namespace IS 'A part of the application';
COMMENT ON COLUMN recur.definitions.tenant IS 'A customer of the application';
COMMENT ON COLUMN recur.definitions.subject IS 'What the action is about, such as an invoice; may be NULL';
COMMENT ON COLUMN recur.definitions.duplicate IS 'Was added beside another action of the same identity';
COMMENT ON COLUMN recur.definitions.owner IS 'The role that created the action; its members see and change it';
COMMENT ON COLUMN recur.definitions.description IS 'For people';
COMMENT ON COLUMN recur.definitions.labels IS 'Strings to find actions by: a flat JSON object';
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
COMMENT ON COLUMN recur.definitions.metadata IS 'More strings for the consumer: a flat JSON object, copied into each dispatch';
COMMENT ON COLUMN recur.definitions.dedup_key IS 'A key for each dispatch; {{recurring_id}} and {{execution_time}} are replaced';
COMMENT ON COLUMN recur.definitions.misfire IS 'Occurrences that were missed: once (the latest of them), skip, or all';
COMMENT ON COLUMN recur.definitions.misfire_grace IS 'An occurrence older than this is not made up for';
COMMENT ON COLUMN recur.definitions.catchup_limit IS 'With misfire all: so many at once at the most';
COMMENT ON COLUMN recur.definitions.overlap IS 'While an earlier dispatch is unfinished: allow, skip, queue_one or cancel_previous';
COMMENT ON COLUMN recur.definitions.jitter IS 'Dispatches become available up to so much later, each by its own fixed fraction';
COMMENT ON COLUMN recur.definitions.horizon IS 'Dispatches are created so far ahead';
COMMENT ON COLUMN recur.definitions.horizon_count IS 'And so many ahead at the most';
COMMENT ON COLUMN recur.definitions.max_attempts IS 'How often a dispatch may be claimed before it has failed';
COMMENT ON COLUMN recur.definitions.retry_backoff IS 'The pause before a retry: base, factor per attempt, and cap';
COMMENT ON COLUMN recur.definitions.lease IS 'How long a consumer may work on a dispatch before it must report or extend';
COMMENT ON COLUMN recur.definitions.priority IS 'Dispatches of a higher priority are claimed first';
COMMENT ON COLUMN recur.definitions.lock_group IS 'At most one dispatch of a group runs at a time';
COMMENT ON COLUMN recur.definitions.notify_channel IS 'Where its dispatches are announced, instead of recur.notify_channel';
COMMENT ON COLUMN recur.definitions.primary_agent IS 'Who should take it, for consumers that distribute work themselves';
COMMENT ON COLUMN recur.definitions.fallback_agent IS 'Who takes it otherwise';
COMMENT ON COLUMN recur.definitions.contact IS 'Who is told of problems';
COMMENT ON COLUMN recur.definitions.mute IS 'Suppresses automated notifications; what people do is still announced';
COMMENT ON COLUMN recur.definitions.mute_interval IS 'At most one automated notification in this time';
COMMENT ON COLUMN recur.definitions.keep_history IS 'Which finished dispatches are kept, until recur.retention removes them: all, failures or none';
COMMENT ON COLUMN recur.definitions.created_at IS 'When the action was created';
COMMENT ON COLUMN recur.definitions.updated_at IS 'When anybody last changed it; runs do not count';

CREATE TABLE recur.timers (
    action_id     uuid    NOT NULL,
    due_at        timestamptz,
    next_run_at   timestamptz,
    last_run_at   timestamptz,
    run_count     bigint  NOT NULL DEFAULT 0,
    error_count   int     NOT NULL DEFAULT 0,
    enabled       boolean NOT NULL DEFAULT true,
    tenant        text    NOT NULL,
    last_error_at timestamptz,
    last_error    text,
    paused_reason text,
    missed_from   timestamptz,
    ended_reason  text,
    CONSTRAINT timers_pkey PRIMARY KEY (action_id),
    CONSTRAINT timers_action FOREIGN KEY (action_id) REFERENCES recur.definitions (id) ON DELETE CASCADE,
    CONSTRAINT timers_disabled_has_no_next CHECK (enabled OR next_run_at IS NULL)
);
-- Every run rewrites the row: cleaned up early and often, the table stays as small as it is.
ALTER TABLE recur.timers SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.2);
CREATE INDEX timers_due ON recur.timers (due_at) WHERE due_at IS NOT NULL;
-- For taking turns among tenants after an outage. Those without tenants need not pay for it.
CREATE INDEX timers_due_by_tenant ON recur.timers (tenant, due_at) WHERE due_at IS NOT NULL AND tenant <> 'default';
CREATE INDEX timers_stopped ON recur.timers (action_id) WHERE NOT enabled;

COMMENT ON TABLE recur.timers IS 'What every run changes of an action; read recur.recurring_actions instead';
COMMENT ON COLUMN recur.timers.action_id IS 'The action';
COMMENT ON COLUMN recur.timers.enabled IS 'Does it fire? Not while paused, nor after its end';
COMMENT ON COLUMN recur.timers.tenant IS 'As of the definition';
COMMENT ON COLUMN recur.timers.due_at IS 'When the dispatcher looks at it: at next_run_at, earlier with a horizon, later after an error';
COMMENT ON COLUMN recur.timers.next_run_at IS 'The earliest occurrence that has not been dispatched; NULL while not enabled';
COMMENT ON COLUMN recur.timers.last_run_at IS 'The occurrence that was dispatched last';
COMMENT ON COLUMN recur.timers.run_count IS 'How many occurrences have been dispatched';
COMMENT ON COLUMN recur.timers.error_count IS 'How often in a row the action could not be evaluated';
COMMENT ON COLUMN recur.timers.last_error_at IS 'When that happened last';
COMMENT ON COLUMN recur.timers.last_error IS 'What the error was';
COMMENT ON COLUMN recur.timers.paused_reason IS 'What recur.pause was told';
COMMENT ON COLUMN recur.timers.missed_from IS 'While paused: the first occurrence that it has missed or will miss';
COMMENT ON COLUMN recur.timers.ended_reason IS 'Why it ended: exhausted (max_runs), expired (ends_at), no_next (the schedule has no more)';

CREATE FUNCTION recur._timers_changed() RETURNS trigger
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'timers_changed_wrapper';
COMMENT ON FUNCTION recur._timers_changed IS 'Internal: tells the dispatcher, when the transaction commits, how early it must look';

CREATE FUNCTION recur._is_dispatching() RETURNS boolean
    LANGUAGE c VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'is_dispatching_wrapper';
COMMENT ON FUNCTION recur._is_dispatching IS 'Internal: is it the dispatcher that writes? It knows what it does';

-- With a horizon an action is looked at now: it may have to be dispatched ahead.
CREATE FUNCTION recur._due_at(action_id uuid, next_run_at timestamptz) RETURNS timestamptz
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM recur.definitions AS d
                WHERE d.id = _due_at.action_id AND (d.horizon IS NOT NULL OR d.horizon_count IS NOT NULL)) THEN
        RETURN CASE WHEN _due_at.next_run_at IS NOT NULL THEN least(_due_at.next_run_at, clock_timestamp()) END;
    END IF;
    RETURN _due_at.next_run_at;
END
$$;
COMMENT ON FUNCTION recur._due_at IS 'Internal: when the dispatcher has to look at an action that runs next at that time';

CREATE FUNCTION recur._timer_inserted() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    NEW.due_at := recur._due_at(NEW.action_id, NEW.next_run_at);
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION recur._timer_inserted IS 'Internal: a timer is due when its action runs next';
CREATE TRIGGER set_due_on_insert BEFORE INSERT ON recur.timers
    FOR EACH ROW WHEN (NEW.due_at IS NULL) EXECUTE FUNCTION recur._timer_inserted();

-- Who sets next_run_at alone, by hand, means that it shall run then. And an action that is resumed has a new chance: what
-- failed before it was paused does not count any more. Afterwards, in an update of its own: any BEFORE trigger here, and
-- every run of every action would fetch and lock its row twice.
CREATE FUNCTION recur._timer_set() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE recur.timers AS t
       SET due_at = CASE WHEN NEW.due_at IS NOT DISTINCT FROM OLD.due_at OR (NEW.due_at IS NULL) <> (NEW.next_run_at IS NULL)
                         THEN recur._due_at(NEW.action_id, NEW.next_run_at) ELSE t.due_at END,
           error_count = CASE WHEN NEW.enabled AND NOT OLD.enabled THEN 0 ELSE t.error_count END
     WHERE t.action_id = NEW.action_id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION recur._timer_set IS 'Internal: what follows from a change of a timer by hand';
CREATE TRIGGER follow AFTER UPDATE OF next_run_at, due_at, enabled ON recur.timers
    FOR EACH ROW WHEN (((NEW.next_run_at IS DISTINCT FROM OLD.next_run_at AND NEW.due_at IS NOT DISTINCT FROM OLD.due_at)
                        OR (NEW.due_at IS NULL) <> (NEW.next_run_at IS NULL)
                        OR (NEW.enabled AND NOT OLD.enabled AND NEW.error_count > 0))
                       AND NOT recur._is_dispatching())
    EXECUTE FUNCTION recur._timer_set();

-- Whoever edits an action that could not be dispatched may have mended it: it is tried at once, not when its pause ends.
CREATE FUNCTION recur._definition_mended() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE recur.timers AS t SET due_at = t.next_run_at
     WHERE t.action_id = NEW.id AND t.error_count > 0 AND t.due_at > t.next_run_at;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION recur._definition_mended IS 'Internal: an action that failed is tried again as soon as it is edited';
CREATE TRIGGER mend AFTER UPDATE ON recur.definitions
    FOR EACH ROW EXECUTE FUNCTION recur._definition_mended();

CREATE TRIGGER wake_dispatcher_on_insert AFTER INSERT ON recur.timers
    FOR EACH ROW WHEN (NEW.due_at IS NOT NULL) EXECUTE FUNCTION recur._timers_changed();
-- One that is due later than before is found by whoever wakes for what it was: no word is needed, nor the price of asking
-- who moves it, once for each dispatch.
CREATE TRIGGER wake_dispatcher AFTER UPDATE OF due_at, next_run_at ON recur.timers
    FOR EACH ROW WHEN ((NEW.due_at < OLD.due_at OR (OLD.due_at IS NULL AND NEW.due_at IS NOT NULL)) AND NOT recur._is_dispatching())
    EXECUTE FUNCTION recur._timers_changed();

CREATE TABLE recur.progress (
    action_id        uuid   NOT NULL,
    completed_count  bigint NOT NULL DEFAULT 0,
    failed_count     bigint NOT NULL DEFAULT 0,
    failed_in_a_row  int    NOT NULL DEFAULT 0,
    last_notified_at timestamptz,
    context          jsonb,
    context_version  int    NOT NULL DEFAULT 0,
    context_left_by  uuid,
    CONSTRAINT progress_pkey PRIMARY KEY (action_id),
    CONSTRAINT progress_action FOREIGN KEY (action_id) REFERENCES recur.definitions (id) ON DELETE CASCADE,
    CONSTRAINT progress_context_is_object CHECK (jsonb_typeof(context) = 'object')
);
COMMENT ON TABLE recur.progress IS 'What consumers change of an action; read recur.recurring_actions instead';
COMMENT ON COLUMN recur.progress.action_id IS 'The action';
COMMENT ON COLUMN recur.progress.completed_count IS 'How many of its dispatches have been completed';
COMMENT ON COLUMN recur.progress.failed_count IS 'How many of its dispatches have failed for good';
COMMENT ON COLUMN recur.progress.failed_in_a_row IS 'How many of them since the last one that was completed';
COMMENT ON COLUMN recur.progress.last_notified_at IS 'When somebody was last told of a problem';
COMMENT ON COLUMN recur.progress.context IS 'What it carries from one run to the next: a JSON object';
COMMENT ON COLUMN recur.progress.context_version IS 'Counts the changes of the context';
COMMENT ON COLUMN recur.progress.context_left_by IS 'The dispatch that left a context last';
-- Completions rewrite the row in place.
ALTER TABLE recur.progress SET (fillfactor = 80);

CREATE TABLE recur.contexts (
    action_id   uuid        NOT NULL,
    version     int         NOT NULL,
    context     jsonb,
    dispatch_id uuid,
    actor       text        NOT NULL DEFAULT session_user,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT contexts_pkey PRIMARY KEY (action_id, version),
    CONSTRAINT contexts_action FOREIGN KEY (action_id) REFERENCES recur.definitions (id) ON DELETE CASCADE
);
COMMENT ON TABLE recur.contexts IS 'The contexts that each action has had, the last hundred of each';
COMMENT ON COLUMN recur.contexts.action_id IS 'The action';
COMMENT ON COLUMN recur.contexts.version IS 'Counts the changes of its context';
COMMENT ON COLUMN recur.contexts.context IS 'The context from then on; NULL where it was cleared';
COMMENT ON COLUMN recur.contexts.dispatch_id IS 'The dispatch that left it, if it was one';
COMMENT ON COLUMN recur.contexts.actor IS 'Who wrote it: the role that the session logged in as';
COMMENT ON COLUMN recur.contexts.at IS 'When';

CREATE VIEW recur.recurring_actions WITH (security_invoker = true) AS
SELECT d.id, d.name, d.namespace, d.tenant, d.subject, d.duplicate, d.owner, d.description, d.labels,
       d.schedule, d.timezone, d.starts_at, d.ends_at, d.max_runs, d.on_dst_gap, d.on_dst_fold,
       d.provider, d.action_type, d.payload, d.metadata, d.dedup_key,
       p.context, p.context_version,
       t.enabled, t.paused_reason, t.ended_reason,
       d.misfire, d.misfire_grace, d.catchup_limit, d.overlap, d.jitter, d.horizon, d.horizon_count,
       d.max_attempts, d.retry_backoff, d.lease, d.priority, d.lock_group, d.notify_channel,
       d.primary_agent, d.fallback_agent, d.contact, d.mute, d.mute_interval, d.keep_history,
       t.next_run_at, t.last_run_at, t.run_count, p.completed_count, p.failed_count,
       t.error_count, t.last_error, t.last_error_at, p.last_notified_at,
       d.created_at, d.updated_at
  FROM recur.definitions AS d
  JOIN recur.timers AS t ON t.action_id = d.id
  JOIN recur.progress AS p ON p.action_id = d.id;
COMMENT ON VIEW recur.recurring_actions IS
    'All actions: what they do, when, and how they are doing. INSERT, UPDATE and DELETE do what create, update and delete do';

-- What the columns mean is said where they are stored; \d+ of the view shall teach it as well.
DO $$
DECLARE
    described record;
BEGIN
    FOR described IN
        SELECT v.attname, col_description(c.attrelid, c.attnum) AS comment
          FROM pg_attribute AS v
          JOIN pg_attribute AS c ON c.attname = v.attname
         WHERE v.attrelid = 'recur.recurring_actions'::regclass AND v.attnum > 0
           AND c.attrelid = ANY (ARRAY['recur.definitions', 'recur.timers', 'recur.progress']::regclass[])
    LOOP
        EXECUTE format('COMMENT ON COLUMN recur.recurring_actions.%I IS %L', described.attname, described.comment);
    END LOOP;
END
$$;

-- What INSERT leaves out. The columns that are missing here may be NULL, or have their default worked out.
ALTER VIEW recur.recurring_actions
    ALTER COLUMN namespace     SET DEFAULT 'default',
    ALTER COLUMN tenant        SET DEFAULT 'default',
    ALTER COLUMN duplicate     SET DEFAULT false,
    ALTER COLUMN owner         SET DEFAULT current_user,
    ALTER COLUMN labels        SET DEFAULT '{}',
    ALTER COLUMN on_dst_gap    SET DEFAULT 'roll_forward',
    ALTER COLUMN on_dst_fold   SET DEFAULT 'first',
    ALTER COLUMN payload       SET DEFAULT '{}',
    ALTER COLUMN metadata      SET DEFAULT '{}',
    ALTER COLUMN misfire       SET DEFAULT 'once',
    ALTER COLUMN catchup_limit SET DEFAULT 100,
    ALTER COLUMN jitter        SET DEFAULT '0',
    ALTER COLUMN max_attempts  SET DEFAULT 3,
    ALTER COLUMN retry_backoff SET DEFAULT '{"base": "30 seconds", "factor": 2, "cap": "1 hour"}',
    ALTER COLUMN lease         SET DEFAULT '5 minutes',
    ALTER COLUMN priority      SET DEFAULT 0,
    ALTER COLUMN mute          SET DEFAULT false,
    ALTER COLUMN keep_history  SET DEFAULT 'all';

-- A dump carries the rows.
SELECT pg_catalog.pg_extension_config_dump('recur.definitions', '');
SELECT pg_catalog.pg_extension_config_dump('recur.timers', '');
SELECT pg_catalog.pg_extension_config_dump('recur.progress', '');
SELECT pg_catalog.pg_extension_config_dump('recur.contexts', '');
