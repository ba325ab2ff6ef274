-- What is stored of an action.
--
-- An action is three rows, one for each party that writes: definitions holds what people wrote, timers what every run
-- rewrites, and progress what consumers report. Each party rewrites only its own, narrow row. Users see the three as
-- one, recur.recurring_actions.
--
-- Defaults and allowed values are not repeated here: crates/recur-core/src/action/columns.rs has them, and every write
-- passes it.

CREATE TABLE recur_internal.definitions (
    id             uuid           NOT NULL,
    name           text           NOT NULL,
    namespace      text           NOT NULL,
    tenant         text           NOT NULL,
    subject        text,
    duplicate      boolean        NOT NULL,
    owner_id       int            NOT NULL,
    description    text,
    labels         jsonb          NOT NULL,
    schedule       recur.schedule NOT NULL,
    timezone       recur.timezone NOT NULL,
    starts_at      timestamptz,
    ends_at        timestamptz,
    max_runs       int,
    count_runs     text           NOT NULL,
    on_dst_gap     text           NOT NULL,
    on_dst_fold    text           NOT NULL,
    provider       text           NOT NULL,
    action_type    text           NOT NULL,
    payload        jsonb          NOT NULL,
    metadata       jsonb          NOT NULL,
    dedup_key      text,
    dedup_window   interval,
    on_duplicate   text           NOT NULL,
    misfire        text           NOT NULL,
    misfire_grace  interval,
    catchup_limit  int            NOT NULL,
    overlap        text           NOT NULL,
    jitter         interval       NOT NULL,
    horizon        interval,
    horizon_count  int,
    max_attempts   int            NOT NULL,
    retry_backoff  jsonb          NOT NULL,
    lease          interval       NOT NULL,
    priority       int            NOT NULL,
    lock_group     text,
    notify_channel text,
    primary_agent  text,
    fallback_agent text,
    fallback_after interval       NOT NULL,
    contact        text,
    mute           boolean        NOT NULL,
    mute_interval  interval,
    error_threshold int,
    record_events  text,
    late_after     interval,
    max_runtime    interval,
    max_silence    interval,
    keep_history   text           NOT NULL,
    endpoint       text,
    journey        text,
    journey_version text,
    start_state    text,
    created_at     timestamptz    NOT NULL,
    updated_at     timestamptz    NOT NULL,
    CONSTRAINT definitions_pkey PRIMARY KEY (id)
);
-- One action of a name and owner, except for those that were added on purpose beside it.
CREATE UNIQUE INDEX definitions_identity ON recur_internal.definitions (name, namespace, tenant, owner_id, subject)
    NULLS NOT DISTINCT WHERE NOT duplicate;
-- Where an action is deleted or renamed, one of those beside it takes its place. There are few of them.
CREATE INDEX definitions_duplicates ON recur_internal.definitions (name, namespace, tenant, owner_id, subject)
    WHERE duplicate;
-- One index for each filter of recur.list.
CREATE INDEX definitions_listed ON recur_internal.definitions (namespace, tenant, name, id);
CREATE INDEX definitions_by_tenant ON recur_internal.definitions (tenant, namespace, name, id);
CREATE INDEX definitions_by_subject ON recur_internal.definitions (subject) WHERE subject IS NOT NULL;
CREATE INDEX definitions_by_owner ON recur_internal.definitions (owner_id);
-- The dispatcher counts the actions of an owner that have a horizon.
CREATE INDEX definitions_with_horizon ON recur_internal.definitions (owner_id)
    WHERE horizon IS NOT NULL OR horizon_count IS NOT NULL;
CREATE INDEX definitions_by_label ON recur_internal.definitions USING gin (labels jsonb_path_ops);
CREATE INDEX definitions_by_word ON recur_internal.definitions
    USING gin (to_tsvector('simple', name || ' ' || coalesce(description, '')));

COMMENT ON TABLE recur_internal.definitions IS
    'What people wrote of each action; read and write recur.recurring_actions instead';
COMMENT ON COLUMN recur_internal.definitions.id IS 'Identifies the action for life';
COMMENT ON COLUMN recur_internal.definitions.name IS
    'The name of the action; with owner, namespace, tenant and subject it is the action''s identity';
COMMENT ON COLUMN recur_internal.definitions.namespace IS 'A part of the application';
COMMENT ON COLUMN recur_internal.definitions.tenant IS 'A customer of the application';
COMMENT ON COLUMN recur_internal.definitions.subject IS 'What the action is about, such as an invoice; may be NULL';
COMMENT ON COLUMN recur_internal.definitions.duplicate IS
    'True for an action that was added beside another one of the same identity';
COMMENT ON COLUMN recur_internal.definitions.owner_id IS 'The owner: the role that created the action';
COMMENT ON COLUMN recur_internal.definitions.description IS 'A text for people';
COMMENT ON COLUMN recur_internal.definitions.labels IS 'Strings to find actions by: a flat JSON object';
COMMENT ON COLUMN recur_internal.definitions.schedule IS
    'When the action recurs, in canonical form; recur.describe says it in words';
COMMENT ON COLUMN recur_internal.definitions.timezone IS 'The time zone of the schedule';
COMMENT ON COLUMN recur_internal.definitions.starts_at IS
    'Nothing fires earlier; intervals and rules are counted from here, and have the moment of creation where none was '
    'given';
COMMENT ON COLUMN recur_internal.definitions.ends_at IS 'The last instant at which an occurrence may fire';
COMMENT ON COLUMN recur_internal.definitions.max_runs IS
    'The number of runs after which the action ends; count_runs says which runs count';
COMMENT ON COLUMN recur_internal.definitions.count_runs IS
    'Which runs max_runs counts: dispatched (what the schedule and recur.backfill dispatched) or completed (what was '
    'completed, with triggers; unfinished dispatches hold a place)';
COMMENT ON COLUMN recur_internal.definitions.on_dst_gap IS 'A local time that does not exist: roll_forward or skip';
COMMENT ON COLUMN recur_internal.definitions.on_dst_fold IS 'A local time that exists twice: first, second or both';
COMMENT ON COLUMN recur_internal.definitions.provider IS
    'Who performs the action: consumers choose their dispatches by provider';
COMMENT ON COLUMN recur_internal.definitions.action_type IS 'What is to be done';
COMMENT ON COLUMN recur_internal.definitions.payload IS 'The arguments: a JSON object, copied into each dispatch';
COMMENT ON COLUMN recur_internal.definitions.metadata IS
    'More strings for the consumer: a flat JSON object, copied into each dispatch';
COMMENT ON COLUMN recur_internal.definitions.dedup_key IS
    'A key for each dispatch; {{recurring_id}} and {{execution_time}} are replaced';
COMMENT ON COLUMN recur_internal.definitions.dedup_window IS
    'How long a pending dispatch stands for others with its key; recur.dedup_window where there is none; with 0 each '
    'occurrence has a dispatch of its own';
COMMENT ON COLUMN recur_internal.definitions.on_duplicate IS
    'What becomes of an occurrence while a dispatch with its key is pending: merge (the pending one gets its payload) '
    'or skip';
COMMENT ON COLUMN recur_internal.definitions.misfire IS
    'Occurrences that were missed while the server was down: once (the latest fires), skip (the latest fires, if it is '
    'no older than misfire_grace), or all (the newest fire, at most catchup_limit)';
COMMENT ON COLUMN recur_internal.definitions.misfire_grace IS
    'Missed occurrences that are older than this do not fire; with misfire skip a minute where none was given';
COMMENT ON COLUMN recur_internal.definitions.catchup_limit IS
    'With misfire all, how many missed occurrences of one outage fire: the newest, the oldest of them first';
COMMENT ON COLUMN recur_internal.definitions.overlap IS
    'While an earlier dispatch is unfinished: allow, skip, queue_one or cancel_previous; where none was given, skip '
    'for an action that was created with a context, otherwise allow';
COMMENT ON COLUMN recur_internal.definitions.jitter IS
    'Dispatches become available up to this much later, each by a fixed fraction of its own';
COMMENT ON COLUMN recur_internal.definitions.horizon IS
    'How far ahead of their time dispatches are generated: at most 10 years, and at most 1,000 dispatches, fewer if '
    'the payload is larger than 8 kB';
COMMENT ON COLUMN recur_internal.definitions.horizon_count IS
    'How many dispatches are generated ahead of their time: at most 1,000, fewer if the payload is larger than 8 kB';
COMMENT ON COLUMN recur_internal.definitions.max_attempts IS 'How often a dispatch may be claimed before it has failed';
COMMENT ON COLUMN recur_internal.definitions.retry_backoff IS
    'The pause before a retry: base, factor per attempt, and cap';
COMMENT ON COLUMN recur_internal.definitions.lease IS
    'How long a consumer may work on a dispatch before it must report or extend';
COMMENT ON COLUMN recur_internal.definitions.priority IS 'Dispatches of a higher priority are claimed first';
COMMENT ON COLUMN recur_internal.definitions.lock_group IS 'At most one dispatch of a lock group runs at a time';
COMMENT ON COLUMN recur_internal.definitions.notify_channel IS
    'Where dispatches are announced, instead of recur.notify_channel';
COMMENT ON COLUMN recur_internal.definitions.primary_agent IS
    'The agent that dispatches are for: only a claim as this agent gets them';
COMMENT ON COLUMN recur_internal.definitions.fallback_agent IS
    'The agent that gets a dispatch after fallback_after, or when an attempt at it has failed';
COMMENT ON COLUMN recur_internal.definitions.fallback_after IS
    'How long a dispatch waits for the primary agent alone, from when it is available';
COMMENT ON COLUMN recur_internal.definitions.contact IS
    'Who is notified of problems; where there is none, recur.default_contact, or else the owner';
COMMENT ON COLUMN recur_internal.definitions.mute IS
    'Suppresses automated notifications; what people do is still announced';
COMMENT ON COLUMN recur_internal.definitions.mute_interval IS
    'The shortest time between two messages to the contact, and between two announced events that no person caused; '
    'where there is none, the contact is notified of each problem and reminded every hour while it goes on';
COMMENT ON COLUMN recur_internal.definitions.error_threshold IS
    'The contact is notified at this many failures in a row; recur.error_threshold where there is none';
COMMENT ON COLUMN recur_internal.definitions.record_events IS
    'Which events of dispatches are recorded: all, none, or a list of completed, failed, cancelled, retrying and '
    'triggered; recur.record_events where there is none';
COMMENT ON COLUMN recur_internal.definitions.late_after IS
    'An alarm is raised for a dispatch that was not started this long after its time';
COMMENT ON COLUMN recur_internal.definitions.max_runtime IS
    'An alarm is raised for an attempt that is still running after this time';
COMMENT ON COLUMN recur_internal.definitions.max_silence IS
    'An alarm is raised if no dispatch has been completed for this time, while the action is enabled';
COMMENT ON COLUMN recur_internal.definitions.keep_history IS
    'Which finished dispatches are kept, until recur.retention removes them: all, failures or none';
COMMENT ON COLUMN recur_internal.definitions.endpoint IS
    'Where webhooks of the action are delivered; where there is none, to the endpoints whose patterns match';
COMMENT ON COLUMN recur_internal.definitions.journey IS 'The journey that recur.schedule_journey scheduled';
COMMENT ON COLUMN recur_internal.definitions.journey_version IS 'The version of the journey';
COMMENT ON COLUMN recur_internal.definitions.start_state IS 'The state of the journey in which each run starts';
COMMENT ON COLUMN recur_internal.definitions.created_at IS 'When the action was created';
COMMENT ON COLUMN recur_internal.definitions.updated_at IS 'When a person last changed the action; runs do not count';

CREATE TABLE recur_internal.timers (
    action_id     uuid    NOT NULL,
    due_at        timestamptz,
    next_run_at   timestamptz,
    last_run_at   timestamptz,
    next_ahead    timestamptz,
    ran_at        timestamptz,
    run_count     bigint  NOT NULL,
    error_count   int     NOT NULL,
    enabled       boolean NOT NULL,
    last_error_at timestamptz,
    last_error    text,
    paused_reason text,
    missed_from   timestamptz,
    ended_reason  text,
    paused_in_bulk boolean,
    CONSTRAINT timers_pkey PRIMARY KEY (action_id),
    CONSTRAINT timers_action FOREIGN KEY (action_id) REFERENCES recur_internal.definitions (id) ON DELETE CASCADE,
    CONSTRAINT timers_disabled_has_no_next CHECK (enabled OR next_run_at IS NULL),
    -- An action that is never looked at would miss its runs without a trace.
    CONSTRAINT timers_next_is_looked_at CHECK (next_run_at IS NULL OR due_at IS NOT NULL)
);
-- Every run rewrites the row. Vacuumed early and often, the table stays small.
ALTER TABLE recur_internal.timers SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.2);
CREATE INDEX timers_due ON recur_internal.timers (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX timers_stopped ON recur_internal.timers (action_id) WHERE NOT enabled;

COMMENT ON TABLE recur_internal.timers IS 'What every run changes of an action; read recur.recurring_actions instead';
COMMENT ON COLUMN recur_internal.timers.action_id IS 'The action';
COMMENT ON COLUMN recur_internal.timers.due_at IS
    'When the dispatcher looks at the action: at next_run_at, earlier with a horizon, later after an error';
COMMENT ON COLUMN recur_internal.timers.next_run_at IS
    'The earliest occurrence that has not been dispatched; NULL while the action is not enabled';
COMMENT ON COLUMN recur_internal.timers.last_run_at IS
    'The latest occurrence that was dispatched, also ahead of its time';
COMMENT ON COLUMN recur_internal.timers.next_ahead IS
    'The earliest dispatch that is ahead of its time, because of a horizon';
COMMENT ON COLUMN recur_internal.timers.ran_at IS
    'While dispatches are ahead of their time, or the last of them unfinished: the latest occurrence that has come due';
COMMENT ON COLUMN recur_internal.timers.run_count IS
    'How many occurrences have been dispatched, also ahead of their time';
COMMENT ON COLUMN recur_internal.timers.error_count IS
    'How often in a row the action could not be dispatched; runs that fail are counted by failed_in_a_row';
COMMENT ON COLUMN recur_internal.timers.enabled IS 'Whether the action fires: not while paused, nor after its end';
COMMENT ON COLUMN recur_internal.timers.last_error_at IS 'When the action last could not be dispatched';
COMMENT ON COLUMN recur_internal.timers.last_error IS 'Why the action last could not be dispatched';
COMMENT ON COLUMN recur_internal.timers.paused_reason IS 'The reason that recur.pause was given';
COMMENT ON COLUMN recur_internal.timers.missed_from IS
    'While paused: the first occurrence that does not fire because of the pause';
COMMENT ON COLUMN recur_internal.timers.paused_in_bulk IS
    'True while the action is paused by recur.pause_all, and recur.resume_all resumes it';
COMMENT ON COLUMN recur_internal.timers.ended_reason IS
    'Why the action ended: exhausted (max_runs), expired (ends_at), no_next (the schedule has no more occurrences)';

CREATE TABLE recur_internal.progress (
    action_id        uuid   NOT NULL,
    completed_count  bigint NOT NULL,
    failed_count     bigint NOT NULL,
    failed_in_a_row  int    NOT NULL,
    interactive_count bigint NOT NULL,
    last_notified_at timestamptz,
    announced_at     timestamptz,
    completed_at     timestamptz,
    context          jsonb,
    context_version  int    NOT NULL,
    max_completed    int,
    failing_since    timestamptz,
    last_run_error_at timestamptz,
    last_run_error   text,
    CONSTRAINT progress_pkey PRIMARY KEY (action_id),
    CONSTRAINT progress_action FOREIGN KEY (action_id) REFERENCES recur_internal.definitions (id) ON DELETE CASCADE
);
-- Reports rewrite the row in place.
ALTER TABLE recur_internal.progress SET (fillfactor = 80);
COMMENT ON TABLE recur_internal.progress IS 'What consumers change of an action; read recur.recurring_actions instead';
COMMENT ON COLUMN recur_internal.progress.action_id IS 'The action';
COMMENT ON COLUMN recur_internal.progress.completed_count IS 'How many dispatches have been completed';
COMMENT ON COLUMN recur_internal.progress.failed_count IS 'How many dispatches have failed for good';
COMMENT ON COLUMN recur_internal.progress.failed_in_a_row IS
    'How many dispatches have failed for good since the last completed one';
COMMENT ON COLUMN recur_internal.progress.interactive_count IS
    'How many runs of a journey have failed because they met a state that waits for input';
COMMENT ON COLUMN recur_internal.progress.last_notified_at IS 'When the contact was last notified of a problem';
COMMENT ON COLUMN recur_internal.progress.announced_at IS
    'With mute_interval: when an event that no person caused was last announced';
COMMENT ON COLUMN recur_internal.progress.completed_at IS
    'With max_silence: when a dispatch was last completed, or max_silence was set';
COMMENT ON COLUMN recur_internal.progress.failing_since IS
    'When the first of the dispatches that have failed in a row did; NULL where the last one was completed';
COMMENT ON COLUMN recur_internal.progress.last_run_error_at IS 'When a dispatch last failed for good';
COMMENT ON COLUMN recur_internal.progress.last_run_error IS
    'Why a dispatch last failed for good: the first 500 characters';
COMMENT ON COLUMN recur_internal.progress.context IS 'What the action carries from one run to the next: a JSON object';
COMMENT ON COLUMN recur_internal.progress.context_version IS 'Counts the changes of the context';

COMMENT ON COLUMN recur_internal.progress.max_completed IS
    'With count_runs completed: max_runs, where reports look for it';

CREATE TABLE recur_internal.contexts (
    action_id   uuid        NOT NULL,
    version     int         NOT NULL,
    context     jsonb,
    dispatch_id uuid,
    actor       text        NOT NULL,
    at          timestamptz NOT NULL,
    CONSTRAINT contexts_pkey PRIMARY KEY (action_id, version),
    CONSTRAINT contexts_action FOREIGN KEY (action_id) REFERENCES recur_internal.definitions (id) ON DELETE CASCADE
);
COMMENT ON TABLE recur_internal.contexts IS 'The last hundred contexts of each action';
COMMENT ON COLUMN recur_internal.contexts.action_id IS 'The action';
COMMENT ON COLUMN recur_internal.contexts.version IS 'Counts the changes of the context';
COMMENT ON COLUMN recur_internal.contexts.context IS 'The context from this version on; NULL where it was cleared';
COMMENT ON COLUMN recur_internal.contexts.dispatch_id IS 'The dispatch that left the context, if a run did';
COMMENT ON COLUMN recur_internal.contexts.actor IS 'The role that wrote the context, after SET ROLE';
COMMENT ON COLUMN recur_internal.contexts.at IS 'When the context was written';

-- One row for each tenant that got an action while recur.max_actions_per_tenant was set. Two sessions that fill the
-- last place of a tenant both write this row: the later one waits, or fails to serialize, instead of counting wrong.
CREATE TABLE recur_internal.tenants (
    owner_id   int         NOT NULL,
    tenant     text        NOT NULL,
    changed_at timestamptz NOT NULL,
    CONSTRAINT tenants_pkey PRIMARY KEY (owner_id, tenant)
);
COMMENT ON TABLE recur_internal.tenants IS 'Tenants that got an action while recur.max_actions_per_tenant was set';
COMMENT ON COLUMN recur_internal.tenants.owner_id IS 'The owner of the actions';
COMMENT ON COLUMN recur_internal.tenants.tenant IS 'The tenant';
COMMENT ON COLUMN recur_internal.tenants.changed_at IS 'When the tenant got its latest action';

SELECT pg_catalog.pg_extension_config_dump('recur_internal.definitions', '');
SELECT pg_catalog.pg_extension_config_dump('recur_internal.timers', '');
SELECT pg_catalog.pg_extension_config_dump('recur_internal.progress', '');
SELECT pg_catalog.pg_extension_config_dump('recur_internal.contexts', '');

-- A restore writes timers that no function of the extension knows of: the dispatcher has to look at all of them.
CREATE FUNCTION recur_internal.rows_restored() RETURNS trigger
    LANGUAGE c
    AS 'MODULE_PATHNAME', 'rows_restored_wrapper';
COMMENT ON FUNCTION recur_internal.rows_restored IS
    'Internal: lets the dispatcher look at everything when the transaction commits, unless the extension itself wrote '
    'the rows';
CREATE TRIGGER wake_dispatcher AFTER INSERT OR UPDATE ON recur_internal.timers
    FOR EACH STATEMENT EXECUTE FUNCTION recur_internal.rows_restored();
