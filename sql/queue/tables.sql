-- The queue and its history: one row for each occurrence that came due.
--
-- A dispatch lives in live_dispatches while it is pending or running, and moves to finished_dispatches when it is
-- completed, has failed for good or is cancelled. Claims scan a small table however long the history is, and retention
-- truncates partitions without unfinished dispatches. Users see both tables as one, recur.dispatches.

CREATE FUNCTION recur_internal.default_lease() RETURNS interval
    LANGUAGE c IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'default_lease_wrapper';
COMMENT ON FUNCTION recur_internal.default_lease IS 'Internal: the lease of a dispatch whose lease is NULL';

CREATE FUNCTION recur_internal.shown_column(name text) RETURNS text
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'shown_column_wrapper';
COMMENT ON FUNCTION recur_internal.shown_column IS
    'Internal: the expression by which recur.dispatches shows a column of its tables';

-- Columns of fixed width come first, so that no row is padded. What is nearly always the default is stored as NULL:
-- each dispatch is written three times, here, by the claim, and into the history.
CREATE TABLE recur_internal.live_dispatches (
    id               uuid        NOT NULL,
    scheduled_at     timestamptz NOT NULL,
    available_at     timestamptz NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT recur.clock(),
    owner_id         int         NOT NULL,
    priority         int         NOT NULL,
    max_attempts     int         NOT NULL,
    attempt          int         NOT NULL DEFAULT 0,
    releases         int         NOT NULL DEFAULT 0,
    cancel_requested boolean     NOT NULL DEFAULT false,
    in_database      boolean,
    started_at       timestamptz,
    lease_expires_at timestamptz,
    context_version  int,
    action_id        uuid,
    parent_id        uuid,
    status           text        NOT NULL DEFAULT 'pending',
    claimed_by       text,
    trigger          text        NOT NULL,
    namespace        text        NOT NULL,
    tenant           text        NOT NULL,
    subject          text,
    provider         text        NOT NULL,
    action_type      text        NOT NULL,
    payload          jsonb       NOT NULL,
    raw_payload      bytea,
    metadata         jsonb,
    dedup_key        text,
    context          jsonb,
    primary_agent    text,
    fallback_agent   text,
    lock_group       text,
    notify_channel   text,
    record_events    text,
    retry_backoff    jsonb,
    lease            interval,
    error            text,
    errors           jsonb,
    name             text,
    labels           jsonb,
    endpoint         text,
    fallback_after   interval,
    extended_at      timestamptz,
    updated_at       timestamptz,
    CONSTRAINT live_dispatches_pkey PRIMARY KEY (id)
);
-- The order in which dispatches are claimed. Dispatches that become available at one instant, as at the top of the
-- hour, are claimed in the order of writing. An index that ended in the id, which is nearly random, would be written
-- all over.
--
-- A consumer must not scan the backlog of other owners: past 300,000 dispatches of another owner a claim took 100 ms.
-- Nor must a consumer of one provider scan the backlog of another provider. A consumer of several owners reads the
-- backlog of each. "Not running" means "pending" in the second index; with the same words, the planner could take one
-- index for the other. An insert pays 0.6 µs and 90 bytes of WAL for each index.
CREATE INDEX live_dispatches_claimable
    ON recur_internal.live_dispatches (owner_id, priority DESC, available_at, created_at) WHERE status = 'pending';
CREATE INDEX live_dispatches_claimable_of_provider
    ON recur_internal.live_dispatches (owner_id, provider, priority DESC, available_at, created_at)
    WHERE status <> 'running';
CREATE INDEX live_dispatches_of_action ON recur_internal.live_dispatches (action_id) WHERE action_id IS NOT NULL;
-- Retries, delayed and staged dispatches: announced when they become available.
CREATE INDEX live_dispatches_later ON recur_internal.live_dispatches (available_at)
    WHERE status = 'pending' AND available_at > created_at;
-- What the database itself runs: in the order in which an executor claims, and to see which owners have something to
-- run.
CREATE INDEX live_dispatches_claimable_in_database
    ON recur_internal.live_dispatches (owner_id, priority DESC, available_at, created_at)
    WHERE status <> 'running' AND in_database;
CREATE INDEX live_dispatches_waiting_in_database ON recur_internal.live_dispatches (owner_id, available_at)
    WHERE status <> 'running' AND in_database;
CREATE INDEX live_dispatches_leased ON recur_internal.live_dispatches (lease_expires_at) WHERE status = 'running';
-- At most one dispatch of an owner's lock group runs.
CREATE UNIQUE INDEX live_dispatches_one_of_a_group_runs ON recur_internal.live_dispatches (lock_group, owner_id)
    WHERE status = 'running' AND lock_group IS NOT NULL;
-- A key of one owner says nothing to another. Running dispatches are there for recur.receive.
CREATE INDEX live_dispatches_by_dedup_key ON recur_internal.live_dispatches (dedup_key, owner_id)
    WHERE dedup_key IS NOT NULL;
-- Webhooks: those that have no endpoint yet, those that wait for their endpoint, and those that are being delivered.
-- The backlog of one endpoint is out of the way of every other. What waits for an agent is for consumers.
CREATE INDEX live_dispatches_to_route ON recur_internal.live_dispatches (available_at)
    WHERE status <> 'running' AND provider = 'webhook' AND endpoint IS NULL AND primary_agent IS NULL;
CREATE INDEX live_dispatches_to_route_of_owner ON recur_internal.live_dispatches (owner_id, available_at)
    WHERE status <> 'running' AND provider = 'webhook' AND endpoint IS NULL AND primary_agent IS NULL;
CREATE INDEX live_dispatches_to_deliver
    ON recur_internal.live_dispatches (owner_id, endpoint, priority DESC, available_at, created_at)
    WHERE status <> 'running' AND endpoint IS NOT NULL AND primary_agent IS NULL;
CREATE INDEX live_dispatches_delivering ON recur_internal.live_dispatches (endpoint, owner_id)
    WHERE status = 'running' AND endpoint IS NOT NULL;
-- Rows of a queue come and go: vacuum must keep up.
ALTER TABLE recur_internal.live_dispatches SET (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0.1);

COMMENT ON TABLE recur_internal.live_dispatches IS 'Pending and running dispatches; read recur.dispatches instead';
COMMENT ON COLUMN recur_internal.live_dispatches.id IS
    'Identifies the dispatch: a function of action and occurrence, safe as an idempotency key, and sorted by time';
COMMENT ON COLUMN recur_internal.live_dispatches.action_id IS
    'The action of the dispatch, which may have been deleted since; NULL for an enqueued dispatch';
COMMENT ON COLUMN recur_internal.live_dispatches.scheduled_at IS
    'The occurrence, or the requested time of an enqueued dispatch';
COMMENT ON COLUMN recur_internal.live_dispatches.trigger IS
    'What caused the dispatch: schedule, manual, backfill, enqueue or webhook';
COMMENT ON COLUMN recur_internal.live_dispatches.namespace IS
    'The namespace of the action';
COMMENT ON COLUMN recur_internal.live_dispatches.tenant IS
    'The tenant of the action';
COMMENT ON COLUMN recur_internal.live_dispatches.owner_id IS
    'The owner: roles that may act as this role see and claim the dispatch';
COMMENT ON COLUMN recur_internal.live_dispatches.subject IS
    'The subject of the action';
COMMENT ON COLUMN recur_internal.live_dispatches.provider IS
    'The kind of consumer that performs the dispatch';
COMMENT ON COLUMN recur_internal.live_dispatches.action_type IS
    'What is to be done';
COMMENT ON COLUMN recur_internal.live_dispatches.payload IS
    'The arguments, as they were when the dispatch came due';
COMMENT ON COLUMN recur_internal.live_dispatches.raw_payload IS
    'A body that was received from outside, byte for byte';
COMMENT ON COLUMN recur_internal.live_dispatches.metadata IS
    'The metadata of the action, NULL for none; users see _recurring_dispatch and _recurring_id added';
COMMENT ON COLUMN recur_internal.live_dispatches.dedup_key IS
    'The action''s key template, filled in';
COMMENT ON COLUMN recur_internal.live_dispatches.context IS
    'What earlier runs of the action left for this run, as of the claim';
COMMENT ON COLUMN recur_internal.live_dispatches.context_version IS
    'The version of that context';
COMMENT ON COLUMN recur_internal.live_dispatches.primary_agent IS
    'The agent that the dispatch is for: only a claim as this agent gets it';
COMMENT ON COLUMN recur_internal.live_dispatches.fallback_agent IS
    'The agent that gets the dispatch after fallback_after, or when an attempt at it has failed';
COMMENT ON COLUMN recur_internal.live_dispatches.priority IS
    'A higher priority is claimed first';
COMMENT ON COLUMN recur_internal.live_dispatches.lock_group IS
    'At most one dispatch of a lock group runs at a time';
COMMENT ON COLUMN recur_internal.live_dispatches.notify_channel IS
    'Where the dispatch is announced, instead of recur.notify_channel';
COMMENT ON COLUMN recur_internal.live_dispatches.record_events IS
    'Which events of the dispatch are recorded, instead of those of recur.record_events';
COMMENT ON COLUMN recur_internal.live_dispatches.status IS
    'pending, running, completed, failed or cancelled';
COMMENT ON COLUMN recur_internal.live_dispatches.attempt IS
    'How often the dispatch has been claimed; a report must name the attempt it is about';
COMMENT ON COLUMN recur_internal.live_dispatches.releases IS
    'How many attempts were given back and do not count';
COMMENT ON COLUMN recur_internal.live_dispatches.max_attempts IS
    'How many attempts the dispatch has before it has failed';
COMMENT ON COLUMN recur_internal.live_dispatches.retry_backoff IS
    'The pause before a retry; NULL means the action''s';
COMMENT ON COLUMN recur_internal.live_dispatches.lease IS
    'How long a claim holds, unless the claim asks for another lease; NULL for the default';
COMMENT ON COLUMN recur_internal.live_dispatches.available_at IS
    'When the dispatch may be claimed';
COMMENT ON COLUMN recur_internal.live_dispatches.claimed_by IS
    'The consumer of the latest attempt';
COMMENT ON COLUMN recur_internal.live_dispatches.lease_expires_at IS
    'Until when the consumer may work on the dispatch';
COMMENT ON COLUMN recur_internal.live_dispatches.started_at IS
    'When the latest attempt was claimed';
COMMENT ON COLUMN recur_internal.live_dispatches.cancel_requested IS
    'True if the running attempt was asked to stop';
COMMENT ON COLUMN recur_internal.live_dispatches.in_database IS
    'True if the database itself runs the dispatch: an SQL action, or one whose type has a handler; NULL if not';
COMMENT ON COLUMN recur_internal.live_dispatches.error IS
    'What went wrong last';
COMMENT ON COLUMN recur_internal.live_dispatches.errors IS
    'What went wrong, attempt by attempt: an array of attempt, at and reason, of the last hundred';
COMMENT ON COLUMN recur_internal.live_dispatches.created_at IS
    'When the dispatch was written: at its occurrence, or before it if the dispatch was staged';
COMMENT ON COLUMN recur_internal.live_dispatches.labels IS
    'Strings to find an enqueued dispatch by: a flat JSON object; NULL for a dispatch of an action';
COMMENT ON COLUMN recur_internal.live_dispatches.endpoint IS
    'Where a webhook is delivered; NULL until it is routed';
COMMENT ON COLUMN recur_internal.live_dispatches.parent_id IS
    'The dispatch that went to several endpoints, of which this one goes to one; NULL for any other';
COMMENT ON COLUMN recur_internal.live_dispatches.fallback_after IS
    'How long the dispatch waits for the primary agent alone; NULL without a fallback';
COMMENT ON COLUMN recur_internal.live_dispatches.extended_at IS
    'When a consumer last extended its lease';
COMMENT ON COLUMN recur_internal.live_dispatches.name IS
    'What an enqueued dispatch is called; NULL for a dispatch of an action, which has a name itself';
COMMENT ON COLUMN recur_internal.live_dispatches.updated_at IS
    'The last change that no other column tells the time of: a merge, a retry, a release, a request to cancel';

-- A ring of partitions: one is written at a time, and the oldest is truncated before it is written again
-- (history/partitions.sql).
CREATE TABLE recur_internal.finished_dispatches (
    finished_at timestamptz NOT NULL,
    LIKE recur_internal.live_dispatches INCLUDING COMMENTS,
    result      jsonb,
    partition   smallint    NOT NULL
) PARTITION BY LIST (partition);
ALTER TABLE recur_internal.finished_dispatches DROP COLUMN lease_expires_at;
COMMENT ON TABLE recur_internal.finished_dispatches IS
    'Dispatches that are over, until recur.retention removes them; read recur.dispatches instead';
COMMENT ON COLUMN recur_internal.finished_dispatches.finished_at IS
    'When the dispatch was completed, failed for good or was cancelled';
COMMENT ON COLUMN recur_internal.finished_dispatches.result IS 'What the consumer reported';
COMMENT ON COLUMN recur_internal.finished_dispatches.partition IS 'The partition of the ring that holds the row';
CREATE INDEX finished_dispatches_by_id ON recur_internal.finished_dispatches (id);
CREATE INDEX finished_dispatches_of_action ON recur_internal.finished_dispatches (action_id, scheduled_at)
    WHERE action_id IS NOT NULL;
CREATE INDEX finished_dispatches_in_database ON recur_internal.finished_dispatches (owner_id, finished_at)
    WHERE in_database OR provider = 'sql';
-- A delivery that is repeated after the first one has finished.
CREATE INDEX finished_dispatches_received ON recur_internal.finished_dispatches (dedup_key, owner_id, created_at)
    WHERE trigger = 'webhook' AND dedup_key IS NOT NULL;
CREATE INDEX finished_dispatches_not_completed ON recur_internal.finished_dispatches (finished_at)
    WHERE status <> 'completed';

SELECT pg_catalog.pg_extension_config_dump('recur_internal.live_dispatches', '');

-- Users see both tables as one. The list of columns stands in CREATE TABLE; the views are built from the catalog. The
-- name of an action is looked up, and only where it is asked for: copied, it would be written with every dispatch.
--
-- Each part is a view with a barrier of its own. The planner takes a UNION ALL apart, and then forgets the barrier of
-- the view around it: a function in a WHERE would see rows before the filter does.
DO $$
DECLARE
    live     text;
    finished text;
BEGIN
    SELECT string_agg(recur_internal.shown_column(a.attname), ', ' ORDER BY a.attnum),
           string_agg(CASE a.attname WHEN 'lease_expires_at' THEN 'NULL::timestamptz AS lease_expires_at'
                                     WHEN 'updated_at' THEN 'd.finished_at AS updated_at'
                                     ELSE recur_internal.shown_column(a.attname) END, ', ' ORDER BY a.attnum)
      INTO live, finished
      FROM pg_attribute AS a
     WHERE a.attrelid = 'recur_internal.live_dispatches'::regclass AND a.attnum > 0 AND NOT a.attisdropped;
    EXECUTE format($view$
        CREATE VIEW recur_internal.visible_live_dispatches WITH (security_barrier) AS
        SELECT %s, NULL::timestamptz AS finished_at, NULL::jsonb AS result
          FROM recur_internal.live_dispatches AS d
         WHERE (SELECT recur_internal.sees_all()) OR d.owner_id = ANY ((SELECT recur_internal.visible_owners())::int[])
        $view$, live);
    EXECUTE format($view$
        CREATE VIEW recur_internal.visible_finished_dispatches WITH (security_barrier) AS
        SELECT %s, d.finished_at, d.result
          FROM recur_internal.finished_dispatches AS d
         WHERE (SELECT recur_internal.sees_all()) OR d.owner_id = ANY ((SELECT recur_internal.visible_owners())::int[])
        $view$, finished);
END
$$;
COMMENT ON VIEW recur_internal.visible_live_dispatches IS 'Internal: the pending and running part of recur.dispatches';
COMMENT ON VIEW recur_internal.visible_finished_dispatches IS 'Internal: the finished part of recur.dispatches';
COMMENT ON COLUMN recur_internal.visible_live_dispatches.owner IS 'The owner of the dispatch';
COMMENT ON COLUMN recur_internal.visible_live_dispatches.finished_at IS 'NULL: the dispatch is not over';
COMMENT ON COLUMN recur_internal.visible_live_dispatches.result IS 'NULL: the dispatch is not over';
COMMENT ON COLUMN recur_internal.visible_finished_dispatches.owner IS 'The owner of the dispatch';
COMMENT ON COLUMN recur_internal.visible_finished_dispatches.lease_expires_at IS 'NULL: the dispatch is over';

CREATE VIEW recur.dispatches WITH (security_barrier) AS
TABLE recur_internal.visible_live_dispatches
UNION ALL
TABLE recur_internal.visible_finished_dispatches;
COMMENT ON VIEW recur.dispatches IS 'One row for each occurrence that came due: claim it, run it, complete it';
COMMENT ON COLUMN recur.dispatches.lease_expires_at IS 'Until when the consumer may work on the dispatch';
COMMENT ON COLUMN recur.dispatches.finished_at IS 'When the dispatch was completed, failed for good or was cancelled';
COMMENT ON COLUMN recur.dispatches.result IS 'What the consumer reported';
COMMENT ON COLUMN recur.dispatches.name IS 'The name of the action, or what an enqueued dispatch is called';
COMMENT ON COLUMN recur.dispatches.updated_at IS
    'When the dispatch last changed: written, merged, claimed, extended, given back, asked to stop or finished';
COMMENT ON COLUMN recur.dispatches.metadata IS
    'The metadata of the action, plus _recurring_dispatch and _recurring_id';
COMMENT ON COLUMN recur.dispatches.lease IS 'How long a claim holds, unless the claim asks for another lease';
COMMENT ON COLUMN recur.dispatches.owner IS 'The owner: roles that may act as this role see and claim the dispatch';
