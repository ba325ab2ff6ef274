-- Enqueueing, claiming and reporting. Consumers call these functions and write no table.

CREATE FUNCTION recur.enqueue(
    provider       text,
    action_type    text,
    payload        jsonb       DEFAULT NULL,
    run_at         timestamptz DEFAULT NULL,
    namespace      text        DEFAULT NULL,
    tenant         text        DEFAULT NULL,
    subject        text        DEFAULT NULL,
    dedup_key      text        DEFAULT NULL,
    dedup_window   interval    DEFAULT NULL,
    metadata       jsonb       DEFAULT NULL,
    priority       int         DEFAULT NULL,
    lock_group     text        DEFAULT NULL,
    notify_channel text        DEFAULT NULL,
    max_attempts   int         DEFAULT NULL,
    retry_backoff  jsonb       DEFAULT NULL,
    lease          interval    DEFAULT NULL,
    name           text        DEFAULT NULL,
    labels         jsonb       DEFAULT NULL
) RETURNS uuid
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'enqueue_wrapper';
COMMENT ON FUNCTION recur.enqueue IS
    'Enqueues a dispatch that belongs to no action, for now or for run_at, and returns its id. The payload may be any '
    'JSON value. A pending dispatch with '
    'the same dedup_key, no older than dedup_window if there is one, keeps its id and takes over what is given of '
    'payload, run_at, priority, metadata, name and labels; with a dedup_window of 0 that never happens';

CREATE FUNCTION recur.receive(
    provider     text,
    action_type  text,
    raw_payload  bytea,
    content_type text     DEFAULT NULL,
    headers      jsonb    DEFAULT NULL,
    namespace    text     DEFAULT NULL,
    tenant       text     DEFAULT NULL,
    subject      text     DEFAULT NULL,
    dedup_key    text     DEFAULT NULL,
    dedup_window interval DEFAULT NULL,
    priority     int      DEFAULT NULL,
    lock_group   text     DEFAULT NULL,
    max_attempts int      DEFAULT NULL,
    name         text     DEFAULT NULL,
    labels       jsonb    DEFAULT NULL
) RETURNS uuid
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'receive_wrapper';
COMMENT ON FUNCTION recur.receive IS
    'Stores what an HTTP front end has received as a dispatch, and returns its id: the body byte for byte in '
    'raw_payload, the headers in payload, the content type in metadata. A pending dispatch with the same dedup_key '
    'takes them over; with a dedup_window, one that is running or has finished stands for the delivery as well, and '
    'its id is returned';

CREATE FUNCTION recur_internal.group_is_free(lock_group text, owner_id int, id uuid, claim timestamptz) RETURNS boolean
    LANGUAGE c VOLATILE STRICT COST 1000
    AS 'MODULE_PATHNAME', 'group_is_free_wrapper';
COMMENT ON FUNCTION recur_internal.group_is_free IS
    'Internal: may the claim that began at this instant start this dispatch of the lock group?';

CREATE FUNCTION recur.claim(
    "limit"      int      DEFAULT 1,
    providers    text[]   DEFAULT NULL,
    action_types text[]   DEFAULT NULL,
    namespaces   text[]   DEFAULT NULL,
    tenants      text[]   DEFAULT NULL,
    lease        interval DEFAULT NULL,
    consumer     text     DEFAULT NULL,
    agent        text     DEFAULT NULL
) RETURNS SETOF recur.dispatches
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'claim_wrapper';
COMMENT ON FUNCTION recur.claim IS
    'Takes up to "limit" pending dispatches for this consumer, who must report on each before its lease expires. An '
    'action type may be a pattern such as task:*. A dispatch with a primary_agent is for a claim as that agent, or as '
    'its fallback; agent => ''*'' takes those of every agent. A list of one is an array as well, '
    'providers => ''{mailer}''';

CREATE FUNCTION recur.complete(INOUT id uuid, INOUT attempt int, result jsonb DEFAULT NULL, context jsonb DEFAULT NULL,
                               OUT status text, OUT available_at timestamptz, OUT cancel_requested boolean)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'complete_wrapper';
COMMENT ON FUNCTION recur.complete IS
    'Reports that a claimed dispatch is done; a context is left for the next run, unless another run has left one '
    'since the claim';

CREATE FUNCTION recur.fail(INOUT id uuid, INOUT attempt int, reason text, retry boolean DEFAULT true,
                           retry_in interval DEFAULT NULL,
                           OUT status text, OUT available_at timestamptz, OUT cancel_requested boolean)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'fail_wrapper';
COMMENT ON FUNCTION recur.fail IS
    'Reports that an attempt has failed; while attempts are left the dispatch is tried again later, unless retry is '
    'false: after retry_in, or else after the pause of its retry_backoff';

CREATE FUNCTION recur.extend(INOUT id uuid, INOUT attempt int, lease interval DEFAULT NULL,
                             OUT status text, OUT available_at timestamptz, OUT cancel_requested boolean)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'extend_wrapper';
COMMENT ON FUNCTION recur.extend IS
    'Renews the lease of a claimed dispatch from now on; cancel_requested says whether the run was asked to stop';

CREATE FUNCTION recur.release(INOUT id uuid, INOUT attempt int, delay interval DEFAULT NULL,
                              OUT status text, OUT available_at timestamptz, OUT cancel_requested boolean)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'release_wrapper';
COMMENT ON FUNCTION recur.release IS
    'Gives a claimed dispatch back, undone: any consumer can claim it at once, or after delay, and the attempt does '
    'not count';

-- The batch forms have names of their own: drivers that leave types to the server could not call an overload.
CREATE FUNCTION recur.complete_many(ids uuid[], attempts int[], results jsonb[] DEFAULT NULL)
    RETURNS TABLE (id uuid, accepted boolean, status text, problem text)
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'complete_many_wrapper';
COMMENT ON FUNCTION recur.complete_many IS
    'Reports that claimed dispatches are done; returns for each whether the report was accepted, and if not, why';

CREATE FUNCTION recur.fail_many(ids uuid[], attempts int[], reasons text[], retry boolean DEFAULT true)
    RETURNS TABLE (id uuid, accepted boolean, status text, problem text)
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'fail_many_wrapper';
COMMENT ON FUNCTION recur.fail_many IS
    'Reports that attempts have failed; returns for each what the dispatch is now, or why the report was not accepted';
