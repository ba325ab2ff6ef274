-- The life of an action: create, update, pause, resume, delete.
--
-- Where an action is meant, an id or a name does: each function has a form that takes a uuid, and one that takes a
-- text, which is an id if it reads as one. NULL for namespace and tenant means 'default', NULL for subject an action
-- without one.

CREATE FUNCTION recur_internal.action_id(action text, namespace text, tenant text, subject text) RETURNS uuid
    LANGUAGE c STABLE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'action_id_wrapper';
COMMENT ON FUNCTION recur_internal.action_id IS
    'Internal: the id of the action that an id or a name means, of those that the caller sees; raises if there is none';

-- What a function in SQL or PL/pgSQL checks before it calls another one. An error then has at most one line of context:
-- the function that was called.
CREATE FUNCTION recur_internal.checked_limit("limit" int) RETURNS int
    LANGUAGE c IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'checked_limit_wrapper';
COMMENT ON FUNCTION recur_internal.checked_limit IS
    'Internal: the number of rows to return; raises unless there is one';
CREATE FUNCTION recur_internal.checked_instant(argument text, instant timestamptz) RETURNS timestamptz
    LANGUAGE c IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'checked_instant_wrapper';
COMMENT ON FUNCTION recur_internal.checked_instant IS
    'Internal: the value of an argument; raises unless it is a finite point in time';

-- NULL means the default of the column, which crates/recur-core/src/action/columns.rs has. The list of arguments stands
-- here alone: the implementation reads it from the catalog.
CREATE FUNCTION recur.create(
    name           text,
    schedule       text,
    provider       text,
    action_type    text,
    payload        jsonb       DEFAULT NULL,
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
    context        jsonb       DEFAULT NULL,
    dedup_key      text        DEFAULT NULL,
    dedup_window   interval    DEFAULT NULL,
    on_duplicate   text        DEFAULT NULL,
    misfire        text        DEFAULT NULL,
    misfire_grace  interval    DEFAULT NULL,
    catchup_limit  int         DEFAULT NULL,
    overlap        text        DEFAULT NULL,
    jitter         interval    DEFAULT NULL,
    horizon        interval    DEFAULT NULL,
    horizon_count  int         DEFAULT NULL,
    max_attempts   int         DEFAULT NULL,
    retry_backoff  jsonb       DEFAULT NULL,
    lease          interval    DEFAULT NULL,
    priority       int         DEFAULT NULL,
    lock_group     text        DEFAULT NULL,
    notify_channel text        DEFAULT NULL,
    primary_agent  text        DEFAULT NULL,
    fallback_agent text        DEFAULT NULL,
    fallback_after interval    DEFAULT NULL,
    contact        text        DEFAULT NULL,
    mute           boolean     DEFAULT NULL,
    mute_interval  interval    DEFAULT NULL,
    error_threshold int        DEFAULT NULL,
    record_events  text        DEFAULT NULL,
    late_after     interval    DEFAULT NULL,
    max_runtime    interval    DEFAULT NULL,
    max_silence    interval    DEFAULT NULL,
    keep_history   text        DEFAULT NULL,
    endpoint       text        DEFAULT NULL,
    enabled        boolean     DEFAULT NULL,
    paused_reason  text        DEFAULT NULL,
    on_existing    text        DEFAULT NULL
) RETURNS uuid
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'create_wrapper';
COMMENT ON FUNCTION recur.create IS
    'Creates an action and returns its id; the action fires from the moment the transaction commits. Where the caller '
    'has one of the same namespace, tenant, name and subject, on_existing says what happens: fail (the default), '
    'upsert or add_another';

CREATE FUNCTION recur.create_many(definitions jsonb[]) RETURNS SETOF uuid
    LANGUAGE c ROWS 1000
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'create_many_wrapper';
COMMENT ON FUNCTION recur.create_many IS
    'Creates actions in bulk, all or none, and returns their ids in order. Each element is an object with the '
    'arguments of recur.create by name; an error says which element it is about, counted from 1';

CREATE FUNCTION recur.update(INOUT id uuid, changes jsonb, if_updated_at timestamptz DEFAULT NULL,
                             OUT name text, OUT enabled boolean, OUT next_run_at timestamptz)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'update_wrapper';
COMMENT ON FUNCTION recur.update(uuid, jsonb, timestamptz) IS
    'Changes what is named in changes and nothing else; null clears. A change of schedule, time zone or bounds '
    'recomputes next_run_at from now. Refused with RC011 if the updated_at of the action is not if_updated_at';
CREATE FUNCTION recur.update(action text, changes jsonb, namespace text DEFAULT NULL, tenant text DEFAULT NULL,
                             subject text DEFAULT NULL, if_updated_at timestamptz DEFAULT NULL)
    RETURNS TABLE (id uuid, name text, enabled boolean, next_run_at timestamptz)
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'update_named_wrapper';
COMMENT ON FUNCTION recur.update(text, jsonb, text, text, text, timestamptz) IS
    'Changes what is named in changes and nothing else, of the action with this id or name, unless its updated_at is '
    'another than if_updated_at';

-- The columns that occurrences depend on.
CREATE FUNCTION recur_internal.with_changes(
    id uuid, changes jsonb,
    OUT schedule text, OUT timezone text, OUT starts_at timestamptz, OUT ends_at timestamptz, OUT max_runs int,
    OUT on_dst_gap text, OUT on_dst_fold text
) RETURNS SETOF record
    LANGUAGE c STABLE ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'with_changes_wrapper';
COMMENT ON FUNCTION recur_internal.with_changes IS
    'Internal: what recur.update would make of an action; raises what recur.update would raise, and changes nothing';

CREATE FUNCTION recur.pause(INOUT id uuid, reason text DEFAULT NULL,
                            OUT name text, OUT enabled boolean, OUT next_run_at timestamptz)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'pause_wrapper';
COMMENT ON FUNCTION recur.pause(uuid, text) IS 'Stops an action from firing until recur.resume';
CREATE FUNCTION recur.pause(action text, reason text DEFAULT NULL, namespace text DEFAULT NULL,
                            tenant text DEFAULT NULL, subject text DEFAULT NULL)
    RETURNS TABLE (id uuid, name text, enabled boolean, next_run_at timestamptz)
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'pause_named_wrapper';
COMMENT ON FUNCTION recur.pause(text, text, text, text, text) IS
    'Stops the action with this id or name from firing until recur.resume';

CREATE FUNCTION recur.resume(INOUT id uuid, OUT name text, OUT enabled boolean, OUT next_run_at timestamptz)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'resume_wrapper';
COMMENT ON FUNCTION recur.resume(uuid) IS
    'Lets a paused action fire again, from its next occurrence on; the occurrences of the pause do not fire';
CREATE FUNCTION recur.resume(action text, namespace text DEFAULT NULL, tenant text DEFAULT NULL,
                             subject text DEFAULT NULL)
    RETURNS TABLE (id uuid, name text, enabled boolean, next_run_at timestamptz)
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'resume_named_wrapper';
COMMENT ON FUNCTION recur.resume(text, text, text, text) IS
    'Lets the paused action with this id or name fire again, from its next occurrence on';

CREATE FUNCTION recur.delete(INOUT id uuid, OUT name text, OUT enabled boolean, OUT next_run_at timestamptz)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'delete_wrapper';
COMMENT ON FUNCTION recur.delete(uuid) IS
    'Deletes an action and returns its last state; its pending dispatches are cancelled, its history stays';
CREATE FUNCTION recur.delete(action text, namespace text DEFAULT NULL, tenant text DEFAULT NULL,
                             subject text DEFAULT NULL)
    RETURNS TABLE (id uuid, name text, enabled boolean, next_run_at timestamptz)
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'delete_named_wrapper';
COMMENT ON FUNCTION recur.delete(text, text, text, text) IS
    'Deletes the action with this id or name; its pending dispatches are cancelled, its history stays';

CREATE FUNCTION recur.restore_context(INOUT id uuid, version int,
                                      OUT name text, OUT enabled boolean, OUT next_run_at timestamptz)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'restore_context_wrapper';
COMMENT ON FUNCTION recur.restore_context(uuid, int) IS
    'Gives an action the context that it had at a version, as a new version; a run that is under way can not '
    'overwrite it';
CREATE FUNCTION recur.restore_context(action text, version int, namespace text DEFAULT NULL, tenant text DEFAULT NULL,
                                      subject text DEFAULT NULL)
    RETURNS TABLE (id uuid, name text, enabled boolean, next_run_at timestamptz)
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'restore_context_named_wrapper';
COMMENT ON FUNCTION recur.restore_context(text, int, text, text, text) IS
    'Gives the action with this id or name the context that it had at a version, as a new version';

CREATE FUNCTION recur.pause_all(namespace text DEFAULT NULL, tenant text DEFAULT NULL, labels jsonb DEFAULT NULL,
                                reason text DEFAULT NULL)
    RETURNS TABLE (id uuid, name text, enabled boolean, next_run_at timestamptz)
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'pause_all_wrapper';
COMMENT ON FUNCTION recur.pause_all IS
    'Pauses every running action that the filters name, all of them without a filter, and returns them';

CREATE FUNCTION recur.resume_all(namespace text DEFAULT NULL, tenant text DEFAULT NULL, labels jsonb DEFAULT NULL)
    RETURNS TABLE (id uuid, name text, enabled boolean, next_run_at timestamptz)
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'resume_all_wrapper';
COMMENT ON FUNCTION recur.resume_all IS
    'Resumes every action that recur.pause_all has paused, that the filters name and that has an occurrence left, and '
    'returns them. What was paused by itself stays paused';

CREATE FUNCTION recur.reassign_owner("from" text, "to" text, OUT actions bigint, OUT dispatches bigint)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'reassign_owner_wrapper';
COMMENT ON FUNCTION recur.reassign_owner IS
    'Gives all actions and pending dispatches of one owner to another, and returns how many. The caller may SET ROLE '
    'to both; an admin needs that for the new owner only. Running and finished dispatches, and events, stay';

CREATE FUNCTION recur.forget_subject(subject text, namespace text DEFAULT NULL, tenant text DEFAULT NULL,
                                     OUT actions bigint, OUT dispatches bigint, OUT contexts bigint,
                                     OUT events bigint)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'forget_subject_wrapper';
COMMENT ON FUNCTION recur.forget_subject IS
    'Removes everything that is stored of a subject, in all namespaces and tenants unless they are given: actions, '
    'contexts, dispatches live and finished, and events. Returns how many; an event without content records that';
