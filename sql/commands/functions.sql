-- SQL actions and handlers.

CREATE FUNCTION recur.create_sql(
    name           text,
    schedule       text,
    command        text,
    timezone       text        DEFAULT NULL,
    timeout        interval    DEFAULT NULL,
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
    AS 'MODULE_PATHNAME', 'create_sql_wrapper';
COMMENT ON FUNCTION recur.create_sql IS
    'Creates an action whose command the database itself runs, as its owner, and returns its id. A run takes at most '
    'timeout; a run that fails is tried again up to max_attempts. Unless overlap says otherwise, one runs at a time, '
    'and one waits';

CREATE FUNCTION recur.enqueue_sql(
    command        text,
    run_at         timestamptz DEFAULT NULL,
    timeout        interval    DEFAULT NULL,
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
    AS 'MODULE_PATHNAME', 'enqueue_sql_wrapper';
COMMENT ON FUNCTION recur.enqueue_sql IS
    'Lets the database run a command once, as the role that calls, at run_at or now; returns the id of the dispatch';

CREATE FUNCTION recur.set_handler(action_type text, function regprocedure, timeout interval DEFAULT NULL,
                                  owner text DEFAULT NULL) RETURNS void
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'set_handler_wrapper';
COMMENT ON FUNCTION recur.set_handler IS
    'Lets a function run every dispatch of an action type, or of a pattern such as billing:*, of the caller or of '
    'another owner that the caller may SET ROLE to. The most specific pattern wins. The function takes (payload '
    'jsonb), or context and dispatch as well, returns jsonb, void, or result and context, and runs in the transaction '
    'that completes the dispatch';
CREATE FUNCTION recur.drop_handler(action_type text, owner text DEFAULT NULL) RETURNS void
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'drop_handler_wrapper';
COMMENT ON FUNCTION recur.drop_handler IS
    'Removes a handler; dispatches of the action type wait for consumers again';

CREATE FUNCTION recur.arm_sql(owner text DEFAULT NULL) RETURNS void
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'arm_sql_wrapper';
COMMENT ON FUNCTION recur.arm_sql IS
    'Lets the SQL actions and handlers of an owner run after they were restored or inserted by hand: of the caller, of '
    'another owner that the caller may SET ROLE to, or, with *, of all of those. Look through them first';

CREATE VIEW recur.handlers WITH (security_barrier) AS
SELECT h.pattern AS action_type, h.function, h.timeout::interval AS timeout,
       recur_internal.owner_name(h.owner_id) AS owner,
       EXISTS (SELECT FROM recur_internal.armed_owners AS a WHERE a.owner_id = h.owner_id) AS is_armed,
       h.created_at
  FROM recur_internal.handlers AS h
 WHERE (SELECT recur_internal.sees_all()) OR h.owner_id = ANY ((SELECT recur_internal.visible_owners())::int[]);
COMMENT ON VIEW recur.handlers IS 'Functions that run dispatches inside the database';
COMMENT ON COLUMN recur.handlers.action_type IS 'Which action types: one, or the beginning of some and a *';
COMMENT ON COLUMN recur.handlers.timeout IS 'How long a call may take; NULL where statement_timeout decides';
COMMENT ON COLUMN recur.handlers.owner IS 'The owner, whose dispatches the function runs, as that role';
COMMENT ON COLUMN recur.handlers.is_armed IS 'False until recur.arm_sql lets the owner''s SQL run';
