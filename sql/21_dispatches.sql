-- What is to be done, and what has been done: one row for each occurrence that came due.
--
-- A dispatch lives in recur.live_dispatches while it is pending or running, and moves to recur.finished_dispatches when
-- it is completed, has failed for good or is cancelled. So claiming looks at a small table however long the history
-- is, and retention empties whole partitions, in which nothing unfinished can be. Users see both as one,
-- recur.dispatches.

-- Roles are kept as text here as everywhere: a name would take 64 bytes of each row, however short it is.
CREATE TABLE recur.live_dispatches (
    id               uuid        NOT NULL,
    action_id        uuid,
    scheduled_at     timestamptz NOT NULL,
    trigger          text        NOT NULL,
    namespace        text        NOT NULL DEFAULT 'default',
    tenant           text        NOT NULL DEFAULT 'default',
    owner            text        NOT NULL DEFAULT current_user,
    subject          text,
    provider         text        NOT NULL,
    action_type      text        NOT NULL,
    payload          jsonb       NOT NULL DEFAULT '{}',
    raw_payload      bytea,
    metadata         jsonb       NOT NULL DEFAULT '{}',
    dedup_key        text,
    context          jsonb,
    context_version  int,
    primary_agent    text,
    fallback_agent   text,
    priority         int         NOT NULL DEFAULT 0,
    lock_group       text,
    notify_channel   text,
    status           text        NOT NULL DEFAULT 'pending',
    attempt          int         NOT NULL DEFAULT 0,
    releases         int         NOT NULL DEFAULT 0,
    max_attempts     int         NOT NULL DEFAULT 3,
    retry_backoff    jsonb,
    lease            interval,
    available_at     timestamptz NOT NULL DEFAULT now(),
    claimed_by       text,
    lease_expires_at timestamptz,
    started_at       timestamptz,
    finished_at      timestamptz,
    cancel_requested boolean     NOT NULL DEFAULT false,
    result           jsonb,
    error            text,
    errors           jsonb,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT live_dispatches_pkey PRIMARY KEY (id),
    CONSTRAINT live_dispatches_trigger_known CHECK (trigger IN ('schedule', 'manual', 'backfill', 'enqueue', 'webhook')),
    CONSTRAINT live_dispatches_status_known CHECK (status IN ('pending', 'running'))
);
-- The order in which dispatches are claimed. When each was written tells apart what became available at the same time, as a
-- herd does; by its id, which is as good as random, an insert would land anywhere in the index.
CREATE INDEX live_dispatches_claimable ON recur.live_dispatches (priority DESC, available_at, created_at) WHERE status = 'pending';
CREATE INDEX live_dispatches_of_action ON recur.live_dispatches (action_id) WHERE action_id IS NOT NULL;
-- Retries, delayed and staged ones: whoever listens is told when they become available.
CREATE INDEX live_dispatches_later ON recur.live_dispatches (available_at)
    WHERE status = 'pending' AND available_at > created_at;
CREATE INDEX live_dispatches_leased ON recur.live_dispatches (lease_expires_at) WHERE status = 'running';
-- At most one of a group runs, whatever claims it.
CREATE UNIQUE INDEX live_dispatches_one_of_a_group_runs ON recur.live_dispatches (lock_group)
    WHERE status = 'running' AND lock_group IS NOT NULL;
CREATE INDEX live_dispatches_by_dedup_key ON recur.live_dispatches (dedup_key)
    WHERE status = 'pending' AND dedup_key IS NOT NULL;
-- A queue: rows come and go, and what is dead must not be waded through.
ALTER TABLE recur.live_dispatches SET (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_analyze_scale_factor = 0.1);

COMMENT ON TABLE recur.live_dispatches IS 'The dispatches that are pending or running; read recur.dispatches instead';
COMMENT ON COLUMN recur.live_dispatches.id IS 'A function of action and occurrence: safe as an idempotency key, and sorted by time';
COMMENT ON COLUMN recur.live_dispatches.action_id IS 'The action it belongs to, which may have been deleted since; NULL for one that was enqueued';
COMMENT ON COLUMN recur.live_dispatches.scheduled_at IS 'The occurrence';
COMMENT ON COLUMN recur.live_dispatches.trigger IS 'What caused it: schedule, manual, backfill, enqueue or webhook';
COMMENT ON COLUMN recur.live_dispatches.namespace IS 'As of the action';
COMMENT ON COLUMN recur.live_dispatches.tenant IS 'As of the action';
COMMENT ON COLUMN recur.live_dispatches.owner IS 'As of the action: the members of this role see and claim it';
COMMENT ON COLUMN recur.live_dispatches.subject IS 'As of the action';
COMMENT ON COLUMN recur.live_dispatches.provider IS 'Who shall perform it';
COMMENT ON COLUMN recur.live_dispatches.action_type IS 'What is to be done';
COMMENT ON COLUMN recur.live_dispatches.payload IS 'The arguments, as they were when it came due';
COMMENT ON COLUMN recur.live_dispatches.raw_payload IS 'A body that came from outside, byte for byte';
COMMENT ON COLUMN recur.live_dispatches.metadata IS 'The action''s, plus _recurring_dispatch and _recurring_id';
COMMENT ON COLUMN recur.live_dispatches.dedup_key IS 'The action''s template, filled in';
COMMENT ON COLUMN recur.live_dispatches.context IS 'What earlier runs of the action left for this one, as of when it was claimed';
COMMENT ON COLUMN recur.live_dispatches.context_version IS 'The version of that context';
COMMENT ON COLUMN recur.live_dispatches.primary_agent IS 'Who should take it';
COMMENT ON COLUMN recur.live_dispatches.fallback_agent IS 'Who takes it otherwise';
COMMENT ON COLUMN recur.live_dispatches.priority IS 'A higher one is claimed first';
COMMENT ON COLUMN recur.live_dispatches.lock_group IS 'At most one dispatch of a group runs at a time';
COMMENT ON COLUMN recur.live_dispatches.notify_channel IS 'Where it is announced, instead of recur.notify_channel';
COMMENT ON COLUMN recur.live_dispatches.status IS 'pending, running, completed, failed or cancelled';
COMMENT ON COLUMN recur.live_dispatches.attempt IS 'How often it has been claimed; a report must name the attempt that it is about';
COMMENT ON COLUMN recur.live_dispatches.releases IS 'How many of those attempts were given back, and do not count';
COMMENT ON COLUMN recur.live_dispatches.max_attempts IS 'How many attempts it has before it has failed';
COMMENT ON COLUMN recur.live_dispatches.retry_backoff IS 'The pause before a retry; NULL means the action''s';
COMMENT ON COLUMN recur.live_dispatches.lease IS 'How long a claim holds unless it says otherwise; NULL means 5 minutes';
COMMENT ON COLUMN recur.live_dispatches.available_at IS 'When it may be claimed';
COMMENT ON COLUMN recur.live_dispatches.claimed_by IS 'The consumer of the latest attempt';
COMMENT ON COLUMN recur.live_dispatches.lease_expires_at IS 'Until when the consumer may work on it';
COMMENT ON COLUMN recur.live_dispatches.started_at IS 'When the latest attempt was claimed';
COMMENT ON COLUMN recur.live_dispatches.finished_at IS 'When it was completed, failed for good, or cancelled';
COMMENT ON COLUMN recur.live_dispatches.cancel_requested IS 'Somebody wants the run to stop: recur.extend shows it to the consumer';
COMMENT ON COLUMN recur.live_dispatches.result IS 'What the consumer reported';
COMMENT ON COLUMN recur.live_dispatches.error IS 'What went wrong last';
COMMENT ON COLUMN recur.live_dispatches.errors IS 'What went wrong, attempt by attempt: an array of attempt, at and reason';
COMMENT ON COLUMN recur.live_dispatches.created_at IS 'When it was written: at its occurrence, or, where it was staged, just before';

-- A ring of partitions: while one is being written, the oldest is emptied and waits to be the next (23_retention.sql).
CREATE TABLE recur.finished_dispatches (
    LIKE recur.live_dispatches INCLUDING COMMENTS,
    partition smallint NOT NULL,
    CONSTRAINT finished_dispatches_status_known CHECK (status IN ('completed', 'failed', 'cancelled'))
) PARTITION BY LIST (partition);
COMMENT ON TABLE recur.finished_dispatches IS 'The dispatches that are over, until recur.retention removes them; read recur.dispatches instead';
COMMENT ON COLUMN recur.finished_dispatches.partition IS 'Which partition of the ring it is in';
CREATE INDEX finished_dispatches_by_id ON recur.finished_dispatches (id);
CREATE INDEX finished_dispatches_of_action ON recur.finished_dispatches (action_id, scheduled_at) WHERE action_id IS NOT NULL;
CREATE INDEX finished_dispatches_not_completed ON recur.finished_dispatches (finished_at) WHERE status <> 'completed';

CREATE VIEW recur.dispatches WITH (security_invoker = true) AS
SELECT id, action_id, scheduled_at, trigger, namespace, tenant, owner, subject, provider, action_type, payload, raw_payload,
       metadata, dedup_key, context, context_version, primary_agent, fallback_agent, priority, lock_group, notify_channel,
       status, attempt, releases, max_attempts, retry_backoff, lease, available_at, claimed_by, lease_expires_at, started_at,
       finished_at, cancel_requested, result, error, errors, created_at
  FROM recur.live_dispatches
UNION ALL
SELECT id, action_id, scheduled_at, trigger, namespace, tenant, owner, subject, provider, action_type, payload, raw_payload,
       metadata, dedup_key, context, context_version, primary_agent, fallback_agent, priority, lock_group, notify_channel,
       status, attempt, releases, max_attempts, retry_backoff, lease, available_at, claimed_by, lease_expires_at, started_at,
       finished_at, cancel_requested, result, error, errors, created_at
  FROM recur.finished_dispatches;
COMMENT ON VIEW recur.dispatches IS 'One row for each occurrence that came due: claim it, run it, complete it';

SELECT pg_catalog.pg_extension_config_dump('recur.live_dispatches', '');

CREATE FUNCTION recur._available_later() RETURNS trigger
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'available_later_wrapper';
COMMENT ON FUNCTION recur._available_later IS 'Internal: tells the dispatcher, when the transaction commits, of which dispatch it must tell and when';

-- What becomes available later is announced then: a worker must know. What is available as it is written, or given
-- back, is announced by whoever does that.
CREATE TRIGGER announce_later_on_insert AFTER INSERT ON recur.live_dispatches
    FOR EACH ROW WHEN (NEW.available_at > clock_timestamp() AND NOT recur._is_dispatching())
    EXECUTE FUNCTION recur._available_later();
CREATE TRIGGER announce_later AFTER UPDATE OF available_at ON recur.live_dispatches
    FOR EACH ROW WHEN (NEW.status = 'pending' AND NEW.available_at > NEW.created_at AND NEW.releases = OLD.releases
                       AND NOT recur._is_dispatching())
    EXECUTE FUNCTION recur._available_later();

CREATE FUNCTION recur._expanded_key(template text, action_id uuid, scheduled_at timestamptz) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT replace(replace(template, '{{recurring_id}}', action_id::text), '{{execution_time}}',
                   to_char(scheduled_at AT TIME ZONE 'UTC',
                           CASE WHEN date_trunc('second', scheduled_at) = scheduled_at
                                THEN 'YYYY-MM-DD"T"HH24:MI:SS"Z"' ELSE 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"' END))
$$;
COMMENT ON FUNCTION recur._expanded_key IS 'Internal: a dedup_key template, filled in for one occurrence';
