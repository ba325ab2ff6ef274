-- The life of an action: create, update, pause, resume, delete. All of it through recur.recurring_actions.

CREATE FUNCTION recur.get(id uuid) RETURNS recur.recurring_actions
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    action recur.recurring_actions;
BEGIN
    SELECT a.* INTO action FROM recur.recurring_actions AS a WHERE a.id = get.id;
    IF NOT FOUND THEN
        RAISE no_data_found USING
            MESSAGE = format('no action has the id %s', coalesce(get.id::text, 'NULL')),
            HINT = 'recur.list() shows the actions that you can see.';
    END IF;
    RETURN action;
END
$$;
COMMENT ON FUNCTION recur.get IS 'An action by its id';

CREATE FUNCTION recur.create(
    name           text,
    schedule       text,
    provider       text,
    action_type    text,
    payload        jsonb       DEFAULT '{}',
    timezone       text        DEFAULT NULL,
    namespace      text        DEFAULT 'default',
    tenant         text        DEFAULT 'default',
    subject        text        DEFAULT NULL,
    starts_at      timestamptz DEFAULT NULL,
    ends_at        timestamptz DEFAULT NULL,
    max_runs       int         DEFAULT NULL,
    on_dst_gap     text        DEFAULT 'roll_forward',
    on_dst_fold    text        DEFAULT 'first',
    description    text        DEFAULT NULL,
    labels         jsonb       DEFAULT '{}',
    metadata       jsonb       DEFAULT '{}',
    context        jsonb       DEFAULT NULL,
    dedup_key      text        DEFAULT NULL,
    misfire        text        DEFAULT 'once',
    misfire_grace  interval    DEFAULT NULL,
    catchup_limit  int         DEFAULT 100,
    overlap        text        DEFAULT NULL,
    jitter         interval    DEFAULT '0',
    horizon        interval    DEFAULT NULL,
    horizon_count  int         DEFAULT NULL,
    max_attempts   int         DEFAULT 3,
    retry_backoff  jsonb       DEFAULT '{"base": "30 seconds", "factor": 2, "cap": "1 hour"}',
    lease          interval    DEFAULT '5 minutes',
    priority       int         DEFAULT 0,
    lock_group     text        DEFAULT NULL,
    notify_channel text        DEFAULT NULL,
    primary_agent  text        DEFAULT NULL,
    fallback_agent text        DEFAULT NULL,
    contact        text        DEFAULT NULL,
    mute           boolean     DEFAULT false,
    mute_interval  interval    DEFAULT NULL,
    keep_history   text        DEFAULT 'all',
    enabled        boolean     DEFAULT NULL,
    paused_reason  text        DEFAULT NULL,
    on_existing    text        DEFAULT 'fail'
) RETURNS recur.recurring_actions
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    action   recur.recurring_actions;
    existing uuid;
BEGIN
    PERFORM recur._check_choice('on_existing', on_existing, '{fail,upsert,add_another}');
    -- An upsert tries in turn to change and to insert: whichever a concurrent session makes impossible, the other
    -- becomes possible. It gives up when both stay impossible: the action is there and belongs to somebody else.
    FOR try IN 1 .. 10 LOOP
        IF on_existing = 'upsert' THEN
            SELECT a.id INTO existing FROM recur.recurring_actions AS a
             WHERE a.namespace = namespace AND a.tenant = tenant AND a.name = name
               AND a.subject IS NOT DISTINCT FROM subject AND NOT a.duplicate;
            -- What was left out of these keeps its value: an upsert does not resume what an operator has paused.
            UPDATE recur.recurring_actions AS a
               SET (schedule, provider, action_type, payload, timezone, starts_at, ends_at, max_runs, on_dst_gap,
                    on_dst_fold, description, labels, metadata, context, dedup_key, misfire, misfire_grace,
                    catchup_limit, overlap, jitter, horizon, horizon_count, max_attempts, retry_backoff, lease, priority,
                    lock_group, notify_channel, primary_agent, fallback_agent, contact, mute, mute_interval,
                    keep_history, enabled, paused_reason)
                 = (schedule, provider, action_type, payload, coalesce(timezone, a.timezone),
                    coalesce(starts_at, a.starts_at), ends_at, max_runs, on_dst_gap, on_dst_fold, description, labels,
                    metadata, coalesce(context, a.context), dedup_key, misfire, misfire_grace, catchup_limit,
                    coalesce(overlap, a.overlap), jitter, horizon, horizon_count, max_attempts, retry_backoff, lease,
                    priority, lock_group, notify_channel, primary_agent, fallback_agent, contact, mute, mute_interval,
                    keep_history, coalesce(enabled, a.enabled), coalesce(paused_reason, a.paused_reason))
             WHERE a.id = existing
            RETURNING a.* INTO action;
            IF FOUND THEN
                RETURN action;
            END IF;
        END IF;
        BEGIN
            INSERT INTO recur.recurring_actions AS a
                   (name, schedule, provider, action_type, payload, timezone, namespace, tenant, subject, starts_at,
                    ends_at, max_runs, on_dst_gap, on_dst_fold, description, labels, metadata, context, dedup_key,
                    misfire, misfire_grace, catchup_limit, overlap, jitter, horizon, horizon_count, max_attempts,
                    retry_backoff, lease, priority, lock_group, notify_channel, primary_agent, fallback_agent,
                    contact, mute, mute_interval, keep_history, enabled, paused_reason, duplicate)
            VALUES (name, schedule, provider, action_type, payload, timezone, namespace, tenant, subject, starts_at,
                    ends_at, max_runs, on_dst_gap, on_dst_fold, description, labels, metadata, context, dedup_key,
                    misfire, misfire_grace, catchup_limit, overlap, jitter, horizon, horizon_count, max_attempts,
                    retry_backoff, lease, priority, lock_group, notify_channel, primary_agent, fallback_agent,
                    contact, mute, mute_interval, keep_history, enabled, paused_reason, on_existing = 'add_another')
            RETURNING a.* INTO action;
            RETURN action;
        EXCEPTION WHEN unique_violation THEN
            IF on_existing <> 'upsert' OR try = 10 THEN
                RAISE;
            END IF;
        END;
    END LOOP;
END
$$;
COMMENT ON FUNCTION recur.create IS
    'Creates an action and returns it; it fires from the moment the transaction commits. Where one of the same namespace, tenant, name and subject exists, on_existing says what happens: fail, upsert or add_another';

-- The action with these changes, as it would be; every problem names the key that has it.
CREATE FUNCTION recur._changed(action recur.recurring_actions, changes jsonb) RETURNS recur.recurring_actions
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    SET intervalstyle = postgres
AS $$
DECLARE
    change record;
BEGIN
    PERFORM recur._check_object('changes', changes);
    FOR change IN SELECT key, value FROM jsonb_each(changes) LOOP
        IF change.key <> ALL (recur._writable_columns()) THEN
            RAISE invalid_parameter_value USING
                MESSAGE = format('invalid change "%s": %s', change.key,
                    CASE WHEN to_jsonb(action) ? change.key THEN 'this column is maintained by pg_recur'
                         ELSE 'an action has no such column' END),
                HINT = format('What can be changed: %s.', array_to_string(recur._writable_columns(), ', '));
        END IF;
        BEGIN
            action := jsonb_populate_record(action, jsonb_build_object(change.key, change.value));
        EXCEPTION
            WHEN invalid_parameter_value THEN
                RAISE;
            WHEN data_exception OR datatype_mismatch THEN
                RAISE invalid_parameter_value USING
                    MESSAGE = format('invalid %s "%s": %s', change.key, change.value #>> '{}', SQLERRM);
        END;
    END LOOP;
    RETURN action;
END
$$;
COMMENT ON FUNCTION recur._changed IS 'Internal: an action as it would be with these changes';

CREATE FUNCTION recur.update(id uuid, changes jsonb) RETURNS recur.recurring_actions
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    action  recur.recurring_actions := recur.get(update.id);
    wanted  recur.recurring_actions := recur._changed(action, changes);
    columns text;
BEGIN
    -- Only the columns that were named: what another session changes at the same time stays changed.
    SELECT string_agg(format('%1$I = ($2).%1$I', key), ', ') INTO columns FROM jsonb_object_keys(changes) AS key;
    IF columns IS NOT NULL THEN
        EXECUTE format('UPDATE recur.recurring_actions AS a SET %s WHERE a.id = $1', columns) USING action.id, wanted;
    END IF;
    RETURN recur.get(update.id);
END
$$;
COMMENT ON FUNCTION recur.update IS
    'Changes what is named in changes and nothing else; null clears. A change of schedule, time zone or bounds recomputes next_run_at from now';

CREATE FUNCTION recur.pause(id uuid, reason text DEFAULT NULL) RETURNS recur.recurring_actions
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    action recur.recurring_actions := recur.get(pause.id);
BEGIN
    IF NOT action.enabled THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('action "%s" %s', action.name,
                             CASE WHEN action.ended_reason IS NULL THEN 'is paused already' ELSE 'has ended' END),
            HINT = 'recur.resume starts it again.';
    END IF;
    UPDATE recur.recurring_actions AS a SET enabled = false, paused_reason = reason WHERE a.id = action.id;
    IF NOT FOUND THEN
        -- Somebody was faster: it is asked again, and what he did is answered.
        RETURN recur.pause(pause.id, reason);
    END IF;
    RETURN recur.get(pause.id);
END
$$;
COMMENT ON FUNCTION recur.pause IS 'Stops an action from firing until recur.resume';

CREATE FUNCTION recur.resume(id uuid) RETURNS recur.recurring_actions
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    action recur.recurring_actions := recur.get(resume.id);
BEGIN
    IF action.enabled THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('action "%s" is not paused', action.name);
    END IF;
    UPDATE recur.recurring_actions AS a SET enabled = true WHERE a.id = action.id;
    IF NOT FOUND THEN
        RETURN recur.resume(resume.id);
    END IF;
    RETURN recur.get(resume.id);
END
$$;
COMMENT ON FUNCTION recur.resume IS
    'Lets a paused action fire again, from its next occurrence on; what it missed is not made up for';

CREATE FUNCTION recur.delete(id uuid) RETURNS recur.recurring_actions
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    action recur.recurring_actions := recur.get(delete.id);
BEGIN
    DELETE FROM recur.recurring_actions AS a WHERE a.id = action.id;
    IF NOT FOUND THEN
        RETURN recur.get(delete.id);
    END IF;
    RETURN action;
END
$$;
COMMENT ON FUNCTION recur.delete IS
    'Deletes an action and returns what it was; its pending dispatches are cancelled, its history stays';

CREATE FUNCTION recur.pause_all(
    namespace text  DEFAULT NULL,
    tenant    text  DEFAULT NULL,
    labels    jsonb DEFAULT NULL,
    reason    text  DEFAULT NULL
) RETURNS SETOF recur.recurring_actions
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    action uuid;
BEGIN
    -- One by one, in the order of their ids: two that pause or resume the same actions must not wait for each other.
    FOR action IN
        SELECT a.id FROM recur.recurring_actions AS a
         WHERE a.enabled
           AND (pause_all.namespace IS NULL OR a.namespace = pause_all.namespace)
           AND (pause_all.tenant IS NULL OR a.tenant = pause_all.tenant)
           AND (pause_all.labels IS NULL OR a.labels @> pause_all.labels)
         ORDER BY a.id
    LOOP
        RETURN QUERY
        UPDATE recur.recurring_actions AS a SET enabled = false, paused_reason = pause_all.reason
         WHERE a.id = action AND a.enabled
        RETURNING a.*;
    END LOOP;
END
$$;
COMMENT ON FUNCTION recur.pause_all IS 'Pauses every running action that the filters name, all of them without one, and returns them';

CREATE FUNCTION recur.resume_all(
    namespace text  DEFAULT NULL,
    tenant    text  DEFAULT NULL,
    labels    jsonb DEFAULT NULL
) RETURNS SETOF recur.recurring_actions
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    action uuid;
BEGIN
    -- Those that have ended, or would have nothing left to do, stay as they are. In the order of their ids, as above.
    FOR action IN
        SELECT a.id FROM recur.recurring_actions AS a
         WHERE NOT a.enabled AND a.ended_reason IS NULL
           AND (resume_all.namespace IS NULL OR a.namespace = resume_all.namespace)
           AND (resume_all.tenant IS NULL OR a.tenant = resume_all.tenant)
           AND (resume_all.labels IS NULL OR a.labels @> resume_all.labels)
           AND (a.max_runs IS NULL OR a.run_count < a.max_runs)
           AND recur.next_occurrence(a.schedule, a.timezone, clock_timestamp(), a.starts_at, a.ends_at, NULL, a.on_dst_gap, a.on_dst_fold) IS NOT NULL
         ORDER BY a.id
    LOOP
        RETURN QUERY
        UPDATE recur.recurring_actions AS a SET enabled = true
         WHERE a.id = action AND NOT a.enabled
        RETURNING a.*;
    END LOOP;
END
$$;
COMMENT ON FUNCTION recur.resume_all IS 'Resumes every paused action that the filters name and that has an occurrence left, and returns them';
