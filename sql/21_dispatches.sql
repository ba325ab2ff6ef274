-- What is to be done now: one row for each occurrence that came due.

CREATE TABLE recur.dispatches (
    id               uuid        NOT NULL,
    action_id        uuid,
    scheduled_at     timestamptz NOT NULL,
    trigger          text        NOT NULL,
    namespace        text        NOT NULL DEFAULT 'default',
    tenant           text        NOT NULL DEFAULT 'default',
    owner            name        NOT NULL DEFAULT current_user,
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
CREATE INDEX dispatches_claimable ON recur.dispatches (priority DESC, available_at) WHERE status = 'pending';
CREATE INDEX dispatches_of_action ON recur.dispatches (action_id, scheduled_at);

COMMENT ON TABLE recur.dispatches IS 'One row for each occurrence that came due: claim it, run it, complete it';
COMMENT ON COLUMN recur.dispatches.id IS 'A function of action and occurrence: safe as an idempotency key, and sorted by time';
COMMENT ON COLUMN recur.dispatches.action_id IS 'The action it belongs to; it may have been deleted since';
COMMENT ON COLUMN recur.dispatches.scheduled_at IS 'The occurrence';
COMMENT ON COLUMN recur.dispatches.trigger IS 'What caused it: schedule, manual, backfill, enqueue or webhook';
COMMENT ON COLUMN recur.dispatches.namespace IS 'As of the action';
COMMENT ON COLUMN recur.dispatches.tenant IS 'As of the action';
COMMENT ON COLUMN recur.dispatches.owner IS 'As of the action: the members of this role see and claim it';
COMMENT ON COLUMN recur.dispatches.subject IS 'As of the action';
COMMENT ON COLUMN recur.dispatches.provider IS 'Who shall perform it';
COMMENT ON COLUMN recur.dispatches.action_type IS 'What is to be done';
COMMENT ON COLUMN recur.dispatches.payload IS 'The arguments, as they were when it came due';
COMMENT ON COLUMN recur.dispatches.raw_payload IS 'A body that came from outside, byte for byte';
COMMENT ON COLUMN recur.dispatches.metadata IS 'The action''s, plus _recurring_dispatch and _recurring_id';
COMMENT ON COLUMN recur.dispatches.dedup_key IS 'The action''s template, filled in';
COMMENT ON COLUMN recur.dispatches.context IS 'What earlier runs of the action left for this one';
COMMENT ON COLUMN recur.dispatches.context_version IS 'The version of that context';
COMMENT ON COLUMN recur.dispatches.primary_agent IS 'Who should take it';
COMMENT ON COLUMN recur.dispatches.fallback_agent IS 'Who takes it otherwise';
COMMENT ON COLUMN recur.dispatches.priority IS 'A higher one is claimed first';
COMMENT ON COLUMN recur.dispatches.lock_group IS 'At most one dispatch of a group runs at a time';
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

SELECT pg_catalog.pg_extension_config_dump('recur.dispatches', '');
