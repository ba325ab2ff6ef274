-- Endpoints, webhooks, and what a program of level deliverer does with them.

CREATE FUNCTION recur.create_endpoint(
    name        text,
    url         text,
    patterns    text[]   DEFAULT NULL,
    secret      text     DEFAULT NULL,
    headers     jsonb    DEFAULT NULL,
    timeout     interval DEFAULT NULL,
    rate        float8   DEFAULT NULL,
    concurrency int      DEFAULT NULL,
    enabled     boolean  DEFAULT NULL,
    description text     DEFAULT NULL
) RETURNS text
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'create_endpoint_wrapper';
COMMENT ON FUNCTION recur.create_endpoint IS
    'Creates an endpoint of the caller and returns its signing secret, which is shown only now. It gets the caller''s '
    'webhooks whose action type matches one of its patterns, and those that name it. The rate is in deliveries a '
    'second';

CREATE FUNCTION recur.update_endpoint(name text, changes jsonb, owner text DEFAULT NULL) RETURNS void
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'update_endpoint_wrapper';
COMMENT ON FUNCTION recur.update_endpoint IS
    'Changes what is given of url, patterns, headers, timeout, rate, concurrency, enabled and description; NULL is the '
    'default';

CREATE FUNCTION recur.drop_endpoint(name text, owner text DEFAULT NULL) RETURNS void
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'drop_endpoint_wrapper';
COMMENT ON FUNCTION recur.drop_endpoint IS
    'Deletes an endpoint with its secrets; what waits for it fails for good when it is next looked at';

CREATE FUNCTION recur.rotate_webhook_secret(name text, secret text DEFAULT NULL, owner text DEFAULT NULL) RETURNS text
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'rotate_webhook_secret_wrapper';
COMMENT ON FUNCTION recur.rotate_webhook_secret IS
    'Gives an endpoint a new signing secret, and returns it; for 24 hours deliveries are signed with the former one as '
    'well';

CREATE FUNCTION recur.resume_endpoint(name text, owner text DEFAULT NULL) RETURNS void
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'resume_endpoint_wrapper';
COMMENT ON FUNCTION recur.resume_endpoint IS
    'Lets deliveries to an endpoint go on that is paused or disabled, and forgets its failures. An admin may name an '
    'endpoint of the operator, as operator:name';

CREATE FUNCTION recur.create_webhook(
    name           text,
    schedule       text,
    url            text        DEFAULT NULL,
    payload        jsonb       DEFAULT NULL,
    endpoint       text        DEFAULT NULL,
    action_type    text        DEFAULT NULL,
    timezone       text        DEFAULT NULL,
    namespace      text        DEFAULT NULL,
    tenant         text        DEFAULT NULL,
    subject        text        DEFAULT NULL,
    starts_at      timestamptz DEFAULT NULL,
    ends_at        timestamptz DEFAULT NULL,
    max_runs       int         DEFAULT NULL,
    count_runs     text        DEFAULT NULL,
    on_dst_gap     text        DEFAULT NULL,
    on_dst_fold    text        DEFAULT NULL,
    description    text        DEFAULT NULL,
    labels         jsonb       DEFAULT NULL,
    metadata       jsonb       DEFAULT NULL,
    dedup_key      text        DEFAULT NULL,
    dedup_window   interval    DEFAULT NULL,
    on_duplicate   text        DEFAULT NULL,
    misfire        text        DEFAULT NULL,
    misfire_grace  interval    DEFAULT NULL,
    catchup_limit  int         DEFAULT NULL,
    overlap        text        DEFAULT NULL,
    jitter         interval    DEFAULT NULL,
    max_attempts   int         DEFAULT NULL,
    retry_backoff  jsonb       DEFAULT NULL,
    priority       int         DEFAULT NULL,
    lock_group     text        DEFAULT NULL,
    contact        text        DEFAULT NULL,
    mute           boolean     DEFAULT NULL,
    mute_interval  interval    DEFAULT NULL,
    error_threshold int        DEFAULT NULL,
    record_events  text        DEFAULT NULL,
    late_after     interval    DEFAULT NULL,
    max_runtime    interval    DEFAULT NULL,
    max_silence    interval    DEFAULT NULL,
    keep_history   text        DEFAULT NULL,
    enabled        boolean     DEFAULT NULL,
    paused_reason  text        DEFAULT NULL,
    on_existing    text        DEFAULT NULL
) RETURNS uuid
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'create_webhook_wrapper';
COMMENT ON FUNCTION recur.create_webhook IS
    'Creates an action whose payload is sent by HTTP, and returns its id: to a URL, to an endpoint of the caller, or '
    'else to all endpoints whose patterns match its action type. Unless overlap says otherwise, one delivery of it '
    'waits at a time';

CREATE FUNCTION recur.enqueue_webhook(
    url            text        DEFAULT NULL,
    payload        jsonb       DEFAULT NULL,
    run_at         timestamptz DEFAULT NULL,
    endpoint       text        DEFAULT NULL,
    action_type    text        DEFAULT NULL,
    name           text        DEFAULT NULL,
    labels         jsonb       DEFAULT NULL,
    namespace      text        DEFAULT NULL,
    tenant         text        DEFAULT NULL,
    subject        text        DEFAULT NULL,
    dedup_key      text        DEFAULT NULL,
    dedup_window   interval    DEFAULT NULL,
    metadata       jsonb       DEFAULT NULL,
    priority       int         DEFAULT NULL,
    lock_group     text        DEFAULT NULL,
    max_attempts   int         DEFAULT NULL,
    retry_backoff  jsonb       DEFAULT NULL
) RETURNS uuid
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'enqueue_webhook_wrapper';
COMMENT ON FUNCTION recur.enqueue_webhook IS
    'Sends a payload by HTTP once, at run_at or now, and returns the id of the dispatch: to a URL, to an endpoint of '
    'the caller, or else to all endpoints whose patterns match its action type';

CREATE FUNCTION recur.route_webhooks(operator jsonb DEFAULT NULL, "limit" int DEFAULT 1000,
                                     OUT bound int, OUT split int, OUT children int, OUT unmatched int)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'route_webhooks_wrapper';
COMMENT ON FUNCTION recur.route_webhooks IS
    'Gives webhooks that are due their endpoints: the one that matches, a dispatch each where several do, and where '
    'none does they fail for good. The operator''s endpoints are a list of name, patterns, owners, concurrency, rate';

CREATE FUNCTION recur.claim_webhooks(
    "limit"  int      DEFAULT 1,
    lease    interval DEFAULT NULL,
    consumer text     DEFAULT NULL,
    operator jsonb    DEFAULT NULL
) RETURNS TABLE (
    id uuid, attempt int, max_attempts int, owner text, endpoint text, url text, headers jsonb, timeout interval,
    secrets text[], name text, namespace text, tenant text, subject text, action_type text, payload text,
    raw_payload bytea, content_type text, metadata jsonb, parent_id uuid, scheduled_at timestamptz)
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'claim_webhooks_wrapper';
COMMENT ON FUNCTION recur.claim_webhooks IS
    'Takes up to "limit" webhooks that are due, from all endpoints in turn, and within what each endpoint takes at '
    'once and in a second; with the secrets to sign each with. What is claimed is reported before its lease expires';

CREATE FUNCTION recur.extend_webhook(INOUT id uuid, INOUT attempt int, lease interval DEFAULT NULL,
                                     OUT status text, OUT available_at timestamptz, OUT cancel_requested boolean)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'extend_webhook_wrapper';
COMMENT ON FUNCTION recur.extend_webhook IS 'Renews the lease of a claimed webhook from now on';

CREATE FUNCTION recur.release_webhook(INOUT id uuid, INOUT attempt int,
                                      OUT status text, OUT available_at timestamptz, OUT cancel_requested boolean)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'release_webhook_wrapper';
COMMENT ON FUNCTION recur.release_webhook IS
    'Gives a claimed webhook back that was not sent; the attempt does not count';

CREATE FUNCTION recur.report_webhook(INOUT id uuid, INOUT attempt int, outcome text, http_status int DEFAULT NULL,
                                     result jsonb DEFAULT NULL, reason text DEFAULT NULL,
                                     retry_in interval DEFAULT NULL,
                                     OUT status text, OUT available_at timestamptz, OUT cancel_requested boolean)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'report_webhook_wrapper';
COMMENT ON FUNCTION recur.report_webhook IS
    'Reports how a delivery went: delivered, failed, gone (the endpoint is disabled) or throttled (the endpoint is '
    'left alone for retry_in). While attempts are left it is tried again, after retry_in or its own pause';
