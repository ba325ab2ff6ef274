-- The life of an action.

CREATE FUNCTION recur._check_name(argument text, value text) RETURNS boolean
    LANGUAGE c IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'check_name_wrapper';
COMMENT ON FUNCTION recur._check_name IS 'Internal: raises unless value is a text of 1 to 255 characters';

CREATE FUNCTION recur._check_object(argument text, value jsonb) RETURNS boolean
    LANGUAGE c IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'check_object_wrapper';
COMMENT ON FUNCTION recur._check_object IS 'Internal: raises unless value is a JSON object';

CREATE FUNCTION recur._check_labels(argument text, value jsonb) RETURNS boolean
    LANGUAGE c IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'check_labels_wrapper';
COMMENT ON FUNCTION recur._check_labels IS 'Internal: raises unless value is a JSON object of strings';

-- Whatever writes a definition, a function of ours or a plain UPDATE, passes here. Only what is true of a row at
-- any time is checked: a restore of last year's rows must succeed.
CREATE FUNCTION recur._definition_written() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM recur._check_name('name', NEW.name);
    PERFORM recur._check_name('namespace', NEW.namespace);
    PERFORM recur._check_name('tenant', NEW.tenant);
    PERFORM recur._check_name('provider', NEW.provider);
    PERFORM recur._check_name('action_type', NEW.action_type);
    PERFORM recur._check_object('payload', NEW.payload);
    PERFORM recur._check_labels('metadata', NEW.metadata);
    NEW.schedule := recur._canonical_schedule(NEW.schedule);
    NEW.timezone := recur._canonical_timezone(NEW.timezone);
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION recur._definition_written IS 'Internal: validates a definition and brings it into canonical form';

CREATE TRIGGER validate
    BEFORE INSERT OR UPDATE ON recur.definitions
    FOR EACH ROW EXECUTE FUNCTION recur._definition_written();

-- Locks the action and returns it, or raises no_data_found.
CREATE FUNCTION recur._locked_action(id uuid) RETURNS recur.recurring_actions
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    action recur.recurring_actions;
BEGIN
    -- The timer is what the dispatcher locks: from here on neither changes under the other.
    PERFORM FROM recur.timers AS t WHERE t.action_id = _locked_action.id FOR UPDATE;
    SELECT a.* INTO action FROM recur.recurring_actions AS a WHERE a.id = _locked_action.id;
    IF NOT FOUND THEN
        RAISE no_data_found USING
            MESSAGE = format('no action has the id %s', coalesce(_locked_action.id::text, 'NULL')),
            HINT = 'recur.recurring_actions lists the actions that you can see.';
    END IF;
    RETURN action;
END
$$;
COMMENT ON FUNCTION recur._locked_action IS 'Internal: an action, locked against the dispatcher until the transaction ends';

CREATE FUNCTION recur.create(
    name         text,
    schedule     text,
    provider     text,
    action_type  text,
    payload      jsonb       DEFAULT '{}',
    timezone     text        DEFAULT NULL,
    namespace    text        DEFAULT 'default',
    tenant       text        DEFAULT 'default',
    starts_at    timestamptz DEFAULT NULL,
    ends_at      timestamptz DEFAULT NULL,
    max_runs     int         DEFAULT NULL,
    on_dst_gap   text        DEFAULT 'roll_forward',
    on_dst_fold  text        DEFAULT 'first',
    metadata     jsonb       DEFAULT '{}',
    max_attempts int         DEFAULT 3,
    enabled      boolean     DEFAULT true
) RETURNS recur.recurring_actions
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    at          timestamptz := clock_timestamp();
    first_after timestamptz;
    definition  recur.definitions;
    first_run   timestamptz;
    action      recur.recurring_actions;
BEGIN
    -- Checked here as well as in the table, so that an error names the argument and not a domain.
    schedule := recur._canonical_schedule(coalesce(schedule, ''));
    timezone := recur._canonical_timezone(timezone);
    starts_at := coalesce(starts_at, at);
    IF ends_at <= at OR ends_at < starts_at THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid ends_at "%s": must lie in the future and not before starts_at', ends_at),
            HINT = 'Leave it out for no end.';
    END IF;
    -- An occurrence exactly at starts_at counts.
    first_after := greatest(starts_at, at) - interval '1 microsecond';
    first_run := recur.next_occurrence(schedule, timezone, first_after, starts_at, ends_at, max_runs, on_dst_gap, on_dst_fold);
    IF first_run IS NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid schedule "%s": it has no occurrence within starts_at and ends_at', schedule),
            HINT = 'recur.preview shows the occurrences of a schedule.';
    END IF;
    INSERT INTO recur.definitions AS d
           (name, schedule, timezone, provider, action_type, payload, namespace, tenant, starts_at, ends_at,
            max_runs, on_dst_gap, on_dst_fold, metadata, max_attempts)
    VALUES (name, schedule, timezone, provider, action_type, payload, namespace, tenant, starts_at, ends_at,
            max_runs, on_dst_gap, on_dst_fold, metadata, max_attempts)
    RETURNING d.* INTO definition;
    INSERT INTO recur.timers (action_id, enabled, next_run_at)
    VALUES (definition.id, enabled, CASE WHEN enabled THEN first_run END);
    SELECT a.* INTO action FROM recur.recurring_actions AS a WHERE a.id = definition.id;
    RETURN action;
EXCEPTION
    WHEN unique_violation THEN
        RAISE unique_violation USING
            MESSAGE = format('action "%s" already exists in namespace "%s", tenant "%s"', name, namespace, tenant),
            HINT = 'Choose another name, namespace or tenant.';
END
$$;
COMMENT ON FUNCTION recur.create IS 'Creates an action and returns it; it fires from the moment the transaction commits';

CREATE FUNCTION recur.pause(id uuid, reason text DEFAULT NULL) RETURNS recur.recurring_actions
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    action recur.recurring_actions := recur._locked_action(pause.id);
BEGIN
    IF NOT action.enabled THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('action "%s" is %s already', action.name,
                             CASE WHEN action.ended_reason IS NULL THEN 'paused' ELSE 'at its end' END),
            HINT = 'recur.resume starts it again.';
    END IF;
    UPDATE recur.timers AS t
       SET enabled = false, next_run_at = NULL, paused_reason = reason
     WHERE t.action_id = action.id;
    UPDATE recur.definitions AS d SET updated_at = clock_timestamp() WHERE d.id = action.id;
    SELECT a.* INTO action FROM recur.recurring_actions AS a WHERE a.id = action.id;
    RETURN action;
END
$$;
COMMENT ON FUNCTION recur.pause IS 'Stops an action from firing until recur.resume';

CREATE FUNCTION recur.resume(id uuid) RETURNS recur.recurring_actions
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    action   recur.recurring_actions := recur._locked_action(resume.id);
    next_run timestamptz;
BEGIN
    IF action.enabled THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('action "%s" is not paused', action.name);
    END IF;
    IF action.run_count >= action.max_runs THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('action "%s" has had all of its %s runs', action.name, action.max_runs);
    END IF;
    -- From now on: what was due while it was paused is not made up for.
    next_run := recur.next_occurrence(action.schedule, action.timezone, clock_timestamp(), action.starts_at,
                                      action.ends_at, NULL, action.on_dst_gap, action.on_dst_fold);
    IF next_run IS NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('action "%s" has no occurrence left', action.name),
            DETAIL = format('Its schedule is "%s" and its ends_at is %s.', action.schedule,
                            coalesce(action.ends_at::text, 'not set'));
    END IF;
    UPDATE recur.timers AS t
       SET enabled = true, next_run_at = next_run, paused_reason = NULL, ended_reason = NULL
     WHERE t.action_id = action.id;
    UPDATE recur.definitions AS d SET updated_at = clock_timestamp() WHERE d.id = action.id;
    SELECT a.* INTO action FROM recur.recurring_actions AS a WHERE a.id = action.id;
    RETURN action;
END
$$;
COMMENT ON FUNCTION recur.resume IS 'Lets a paused action fire again, from its next occurrence on';
