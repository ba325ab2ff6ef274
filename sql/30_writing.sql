-- How an action is written: one door, whoever knocks.
--
-- recur.create, recur.update and their like, and a plain INSERT, UPDATE or DELETE, all write the view
-- recur.recurring_actions. Its triggers run as the extension's owner, because nobody else may touch the tables behind
-- it or record an event. They validate, work out what follows, store, and record what happened. Whom a role may write
-- to is decided before them: row-level security shows it only its own rows.

-- The first occurrence after an instant, or an error: an action that will never fire is a mistake.
CREATE FUNCTION recur._first_run(definition recur.definitions, after timestamptz, at timestamptz) RETURNS timestamptz
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    first_run timestamptz;
BEGIN
    IF definition.ends_at <= at THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid ends_at "%s": must lie in the future', definition.ends_at),
            HINT = 'Leave it out for no end.';
    END IF;
    PERFORM recur._check_spacing(definition.schedule);
    first_run := recur.next_occurrence(definition.schedule, definition.timezone, after, definition.starts_at,
                                       definition.ends_at, NULL, definition.on_dst_gap, definition.on_dst_fold);
    IF first_run IS NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid schedule "%s": it has no occurrence within starts_at and ends_at', definition.schedule),
            HINT = 'recur.preview shows the occurrences of a schedule.';
    END IF;
    RETURN first_run;
END
$$;
COMMENT ON FUNCTION recur._first_run IS 'Internal: when an action fires first after an instant; raises if it never does';

-- Two sessions that fill the last place of a tenant at the same time must not both succeed. Both write the tenant's row:
-- the later waits for the earlier, and one whose snapshot is older than that fails to serialize instead of counting
-- wrong.
CREATE TABLE recur.tenants (
    tenant     text        NOT NULL,
    changed_at timestamptz NOT NULL,
    CONSTRAINT tenants_pkey PRIMARY KEY (tenant)
);
COMMENT ON TABLE recur.tenants IS 'Tenants that have got an action while recur.max_actions_per_tenant was set';
COMMENT ON COLUMN recur.tenants.tenant IS 'The tenant';
COMMENT ON COLUMN recur.tenants.changed_at IS 'When it got its latest action';

-- Called when the action is already there: it is counted.
CREATE FUNCTION recur._check_quota(tenant text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    quota bigint := current_setting('recur.max_actions_per_tenant')::bigint;
    present bigint;
BEGIN
    IF quota = 0 THEN
        RETURN;
    END IF;
    INSERT INTO recur.tenants AS t (tenant, changed_at) VALUES (_check_quota.tenant, clock_timestamp())
        ON CONFLICT ON CONSTRAINT tenants_pkey DO UPDATE SET changed_at = excluded.changed_at;
    SELECT count(*) INTO present FROM recur.definitions AS d WHERE d.tenant = _check_quota.tenant;
    IF present > quota THEN
        RAISE configuration_limit_exceeded USING
            MESSAGE = format('tenant "%s" has all of the %s actions that it may have', _check_quota.tenant, quota),
            HINT = 'Delete an action, or raise recur.max_actions_per_tenant.';
    END IF;
END
$$;
COMMENT ON FUNCTION recur._check_quota IS 'Internal: raises if a tenant has more actions than it may have';

-- Fires before the others and, unlike them, runs as whoever inserts: only here is it known who that is, behind SET ROLE
-- and functions that run as their owner.
CREATE FUNCTION recur._check_owner() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- Spelled out: whoever inserts need not be allowed to call anything here.
    IF NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = NEW.owner AND pg_has_role(r.oid, 'MEMBER')) THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('invalid owner "%s": %s is not a member of this role', coalesce(NEW.owner, 'NULL'), current_user),
            HINT = 'Leave it out to own the action yourself.';
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION recur._check_owner IS 'Internal: refuses an action in the name of somebody else';

CREATE FUNCTION recur._identity(definition recur.definitions) RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT jsonb_build_object('name', definition.name, 'namespace', definition.namespace, 'tenant', definition.tenant)
           || CASE WHEN definition.subject IS NULL THEN '{}' ELSE jsonb_build_object('subject', definition.subject) END
$$;
COMMENT ON FUNCTION recur._identity IS 'Internal: what people know an action by';

-- An action was deleted or renamed. Of those that stood beside it the oldest takes its place: the identity stays taken.
CREATE FUNCTION recur._promote_duplicate(gone recur.definitions) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp
AS $$
    UPDATE recur.definitions AS d SET duplicate = false
     WHERE d.id = (SELECT x.id FROM recur.definitions AS x
                    WHERE x.namespace = gone.namespace AND x.tenant = gone.tenant AND x.name = gone.name
                      AND x.subject IS NOT DISTINCT FROM gone.subject AND x.duplicate
                    ORDER BY x.created_at, x.id LIMIT 1)
$$;
COMMENT ON FUNCTION recur._promote_duplicate IS 'Internal: gives the identity of an action to one that was added beside it';

CREATE FUNCTION recur._insert_action() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET intervalstyle = postgres
AS $$
DECLARE
    at         timestamptz := clock_timestamp();
    definition recur.definitions;
    first_run  timestamptz;
BEGIN
    IF num_nonnulls(NEW.id, NEW.context_version, NEW.ended_reason, NEW.next_run_at, NEW.last_run_at, NEW.run_count,
                    NEW.completed_count, NEW.failed_count, NEW.error_count, NEW.last_error, NEW.last_error_at, NEW.last_notified_at,
                    NEW.created_at, NEW.updated_at) > 0 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'an action''s id, counters and times can not be given: they are worked out';
    END IF;
    IF NEW.context IS NOT NULL THEN
        PERFORM recur._check_object('context', NEW.context);
    END IF;
    NEW.enabled := coalesce(NEW.enabled, true);
    -- Runs of an action with a context build on each other.
    NEW.overlap := coalesce(NEW.overlap, CASE WHEN NEW.context IS NULL THEN 'allow' ELSE 'skip' END);
    NEW.starts_at := coalesce(NEW.starts_at, at);
    NEW.timezone := recur._canonical_timezone(NEW.timezone);

    definition := jsonb_populate_record(NULL::recur.definitions, to_jsonb(NEW));
    definition.id := gen_random_uuid();
    definition.duplicate := false;
    definition.created_at := now();
    definition.updated_at := at;
    INSERT INTO recur.definitions SELECT definition.* ON CONFLICT DO NOTHING RETURNING * INTO definition;
    IF NOT FOUND THEN
        IF NEW.duplicate IS NOT TRUE THEN
            RAISE unique_violation USING
                MESSAGE = format('action "%s" already exists in namespace "%s", tenant "%s"%s', NEW.name, NEW.namespace,
                                 NEW.tenant, ', subject "' || NEW.subject || '"'),
                HINT = 'on_existing => ''upsert'' changes it, ''add_another'' puts another one beside it.';
        END IF;
        definition := jsonb_populate_record(NULL::recur.definitions, to_jsonb(NEW));
        definition.id := gen_random_uuid();
        definition.created_at := now();
        definition.updated_at := at;
        INSERT INTO recur.definitions SELECT definition.* RETURNING * INTO definition;
    END IF;
    PERFORM recur._check_quota(definition.tenant);
    -- An occurrence exactly at starts_at counts.
    first_run := recur._first_run(definition, greatest(definition.starts_at, at) - interval '1 microsecond', at);
    INSERT INTO recur.timers (action_id, tenant, enabled, next_run_at, paused_reason)
    VALUES (definition.id, definition.tenant, NEW.enabled, CASE WHEN NEW.enabled THEN first_run END,
            CASE WHEN NOT NEW.enabled THEN NEW.paused_reason END);
    INSERT INTO recur.progress (action_id, context, context_version)
    VALUES (definition.id, NEW.context, (NEW.context IS NOT NULL)::int);
    PERFORM recur._record_event('action.created', definition.id, definition.owner, recur._identity(definition)
        || jsonb_build_object('schedule', definition.schedule, 'timezone', definition.timezone, 'next_run_at', first_run));
    SELECT a.* INTO NEW FROM recur.recurring_actions AS a WHERE a.id = definition.id;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION recur._insert_action IS 'Internal: what an INSERT into recur.recurring_actions does';

CREATE FUNCTION recur._update_action() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET intervalstyle = postgres
AS $$
DECLARE
    at          timestamptz := clock_timestamp();
    changes     jsonb;
    refused     text;
    before      recur.definitions;
    definition  recur.definitions;
    timer       recur.timers;
    moved       boolean;
    rescheduled boolean;
    withdrawn   int;
    missed      record;
    was         jsonb;
    is_now      jsonb;
    old_values  jsonb;
    new_values  jsonb;
BEGIN
    SELECT jsonb_object_agg(key, n.value) INTO changes
      FROM jsonb_each(to_jsonb(NEW)) AS n JOIN jsonb_each(to_jsonb(OLD)) AS o USING (key)
     WHERE n.value IS DISTINCT FROM o.value;
    IF changes IS NULL THEN
        RETURN NEW;
    END IF;
    SELECT key INTO refused FROM jsonb_object_keys(changes) AS key WHERE key <> ALL (recur._writable_columns()) LIMIT 1;
    IF FOUND THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid change "%s": this column is maintained by pg_recur', refused),
            HINT = format('What can be changed: %s.', array_to_string(recur._writable_columns(), ', '));
    END IF;
    SELECT attname INTO refused FROM pg_attribute
     WHERE attrelid = 'recur.definitions'::regclass AND attnotnull AND changes -> attname::text = 'null' LIMIT 1;
    IF FOUND OR changes -> 'enabled' = 'null' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid %s "NULL": must have a value', coalesce(refused, 'enabled'));
    END IF;

    -- The timer is what the dispatcher locks: from here on neither changes under the other. What is read after it is
    -- what somebody else may have committed in the meantime, and his changes stay.
    SELECT t.* INTO timer FROM recur.timers AS t WHERE t.action_id = OLD.id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    -- Not earlier: what was dispatched, and perhaps completed, while we waited for the lock is not ahead of its time.
    at := clock_timestamp();
    -- Two who pause it at the same time: the second has nothing left to do, and is told so.
    IF changes -> 'enabled' = to_jsonb(timer.enabled) THEN
        changes := changes - ARRAY['enabled', 'paused_reason'];
        IF changes = '{}' THEN
            RETURN NULL;
        END IF;
    END IF;
    IF changes ? 'paused_reason' AND NEW.enabled AND NEW.paused_reason IS NOT NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid paused_reason "%s": the action is not paused', NEW.paused_reason),
            HINT = 'recur.pause takes a reason.';
    END IF;
    -- What was dispatched ahead of its time was decided on what the action was: it is decided anew.
    withdrawn := recur._withdraw(OLD.id, at);
    IF withdrawn > 0 THEN
        SELECT t.* INTO timer FROM recur.timers AS t WHERE t.action_id = OLD.id;
    END IF;
    SELECT d.* INTO before FROM recur.definitions AS d WHERE d.id = OLD.id;
    PERFORM FROM recur.progress AS p WHERE p.action_id = OLD.id FOR UPDATE;
    SELECT to_jsonb(a) INTO was FROM recur.recurring_actions AS a WHERE a.id = OLD.id;

    definition := jsonb_populate_record(before, changes);
    definition.updated_at := at;
    -- Under another identity it is the one, or there is one already.
    moved := (before.namespace, before.tenant, before.name, before.subject)
        IS DISTINCT FROM (definition.namespace, definition.tenant, definition.name, definition.subject);
    definition.duplicate := before.duplicate AND NOT moved;
    BEGIN
        UPDATE recur.definitions AS d
           SET (name, namespace, tenant, subject, duplicate, description, labels, schedule, timezone, starts_at, ends_at, max_runs,
                on_dst_gap, on_dst_fold, provider, action_type, payload, metadata, dedup_key, misfire, misfire_grace,
                catchup_limit, overlap, jitter, horizon, horizon_count, max_attempts, retry_backoff, lease, priority,
                lock_group, notify_channel, primary_agent, fallback_agent, contact, mute, mute_interval, keep_history, updated_at)
             = (definition.name, definition.namespace, definition.tenant, definition.subject, definition.duplicate, definition.description,
                definition.labels, definition.schedule, definition.timezone, definition.starts_at, definition.ends_at,
                definition.max_runs, definition.on_dst_gap, definition.on_dst_fold, definition.provider,
                definition.action_type, definition.payload, definition.metadata, definition.dedup_key,
                definition.misfire, definition.misfire_grace, definition.catchup_limit, definition.overlap,
                definition.jitter, definition.horizon, definition.horizon_count, definition.max_attempts,
                definition.retry_backoff, definition.lease, definition.priority, definition.lock_group,
                definition.notify_channel, definition.primary_agent, definition.fallback_agent, definition.contact,
                definition.mute, definition.mute_interval, definition.keep_history, definition.updated_at)
         WHERE d.id = OLD.id
        RETURNING d.* INTO definition;
    EXCEPTION WHEN unique_violation THEN
        RAISE unique_violation USING
            MESSAGE = format('action "%s" already exists in namespace "%s", tenant "%s"%s', definition.name,
                             definition.namespace, definition.tenant, ', subject "' || definition.subject || '"'),
            HINT = 'Choose another name, or delete that one first.';
    END;
    IF moved AND NOT before.duplicate THEN
        PERFORM recur._promote_duplicate(before);
    END IF;
    IF definition.tenant <> before.tenant THEN
        PERFORM recur._check_quota(definition.tenant);
        UPDATE recur.timers AS t SET tenant = definition.tenant WHERE t.action_id = OLD.id;
    END IF;
    IF changes ? 'context' THEN
        IF changes -> 'context' <> 'null' THEN
            PERFORM recur._check_object('context', changes -> 'context');
        END IF;
        UPDATE recur.progress AS p
           SET context = nullif(changes -> 'context', 'null'), context_version = p.context_version + 1
         WHERE p.action_id = OLD.id;
    END IF;

    rescheduled := (before.schedule, before.timezone, before.starts_at, before.ends_at, before.max_runs,
                    before.on_dst_gap, before.on_dst_fold)
        IS DISTINCT FROM (definition.schedule, definition.timezone, definition.starts_at, definition.ends_at,
                          definition.max_runs, definition.on_dst_gap, definition.on_dst_fold);
    IF rescheduled THEN
        IF changes ? 'max_runs' AND definition.max_runs <= timer.run_count THEN
            RAISE invalid_parameter_value USING
                MESSAGE = format('invalid max_runs "%s": the action has had %s runs already', definition.max_runs, timer.run_count),
                HINT = 'Choose a higher number, or null for no limit.';
        END IF;
        -- A paused action is checked as well: it shall be able to go on.
        timer.next_run_at := recur._first_run(definition, greatest(definition.starts_at - interval '1 microsecond', at), at);
    END IF;
    IF withdrawn > 0 OR (timer.enabled AND changes ?| ARRAY['horizon', 'horizon_count']) THEN
        -- The last of its runs may have been among them.
        timer.enabled := timer.enabled OR timer.ended_reason IS NOT NULL;
        timer.ended_reason := NULL;
        IF timer.enabled AND NOT rescheduled THEN
            timer.next_run_at := CASE WHEN timer.next_run_at <= at THEN timer.next_run_at
                                      ELSE recur._first_run(definition, greatest(definition.starts_at - interval '1 microsecond', at), at) END;
        END IF;
        rescheduled := true;
    END IF;
    IF changes -> 'enabled' = 'false' THEN
        -- Another session may have paused it while this one waited.
        timer.missed_from := CASE WHEN timer.enabled THEN timer.next_run_at ELSE timer.missed_from END;
        timer.enabled := false;
        timer.paused_reason := NEW.paused_reason;
    ELSIF changes -> 'enabled' = 'true' THEN
        timer.next_run_at := recur._resumed_run(definition, timer, at);
        SELECT m.* INTO missed
          FROM recur._around(definition.schedule, definition.timezone, timer.missed_from - interval '1 microsecond', at,
                             definition.starts_at, definition.ends_at, definition.on_dst_gap, definition.on_dst_fold) AS m
         WHERE timer.missed_from <= at AND m.count > 0;
        IF FOUND THEN
            PERFORM recur._record_event('occurrence.skipped', OLD.id, OLD.owner, jsonb_build_object(
                'reason', 'paused', 'from', timer.missed_from, 'until', missed.previous, 'count', missed.count));
        END IF;
        timer.missed_from := NULL;
        timer.enabled := true;
        timer.paused_reason := NULL;
        timer.ended_reason := NULL;
    ELSIF changes ? 'paused_reason' THEN
        timer.paused_reason := CASE WHEN NOT timer.enabled THEN NEW.paused_reason END;
    END IF;
    IF rescheduled OR changes ?| ARRAY['enabled', 'paused_reason'] THEN
        UPDATE recur.timers AS t
           SET enabled = timer.enabled, paused_reason = timer.paused_reason, ended_reason = timer.ended_reason,
               missed_from = timer.missed_from,
               error_count = CASE WHEN timer.enabled AND NOT t.enabled THEN 0 ELSE t.error_count END,
               next_run_at = CASE WHEN timer.enabled THEN timer.next_run_at END,
               due_at = CASE WHEN NOT timer.enabled THEN NULL
                             WHEN definition.horizon IS NOT NULL OR definition.horizon_count IS NOT NULL
                             THEN least(timer.next_run_at, at) ELSE timer.next_run_at END
         WHERE t.action_id = OLD.id;
    END IF;

    SELECT a.* INTO NEW FROM recur.recurring_actions AS a WHERE a.id = OLD.id;
    is_now := to_jsonb(NEW);
    IF changes ? 'enabled' THEN
        PERFORM recur._record_event(
            CASE WHEN NEW.enabled THEN 'action.resumed' ELSE 'action.paused' END, NEW.id, NEW.owner,
            jsonb_strip_nulls(jsonb_build_object('reason', NEW.paused_reason, 'next_run_at', NEW.next_run_at)));
    END IF;
    SELECT jsonb_object_agg(key, o.value), jsonb_object_agg(key, n.value) INTO old_values, new_values
      FROM jsonb_each(was) AS o JOIN jsonb_each(is_now) AS n USING (key)
     WHERE o.value <> n.value AND key <> 'updated_at'
       AND NOT (changes ? 'enabled' AND key = ANY ('{enabled,paused_reason,ended_reason,next_run_at}'::text[]));
    IF old_values IS NOT NULL THEN
        PERFORM recur._record_event('action.updated', NEW.id, NEW.owner,
                                    jsonb_build_object('old', old_values, 'new', new_values));
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION recur._update_action IS 'Internal: what an UPDATE of recur.recurring_actions does';

CREATE FUNCTION recur._writable_columns() RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT '{name,namespace,tenant,subject,description,labels,schedule,timezone,starts_at,ends_at,max_runs,on_dst_gap,'
           'on_dst_fold,provider,action_type,payload,metadata,dedup_key,context,enabled,paused_reason,misfire,misfire_grace,'
           'catchup_limit,overlap,jitter,horizon,horizon_count,max_attempts,retry_backoff,lease,priority,lock_group,'
           'notify_channel,primary_agent,fallback_agent,contact,mute,mute_interval,keep_history}'::text[]
$$;
COMMENT ON FUNCTION recur._writable_columns IS 'Internal: what people may change of an action';

-- When a paused action fires next. What was due while it was paused is not made up for.
CREATE FUNCTION recur._resumed_run(definition recur.definitions, timer recur.timers, at timestamptz) RETURNS timestamptz
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    next_run timestamptz;
BEGIN
    IF timer.run_count >= definition.max_runs THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('action "%s" has had all of its %s runs', definition.name, definition.max_runs),
            HINT = 'Raise max_runs first.';
    END IF;
    next_run := recur.next_occurrence(definition.schedule, definition.timezone, at, definition.starts_at,
                                      definition.ends_at, NULL, definition.on_dst_gap, definition.on_dst_fold);
    IF next_run IS NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('action "%s" has no occurrence left', definition.name),
            DETAIL = format('Its schedule is "%s" and its ends_at is %s.', definition.schedule,
                            coalesce(definition.ends_at::text, 'not set')),
            HINT = 'Change the schedule or ends_at first.';
    END IF;
    RETURN next_run;
END
$$;
COMMENT ON FUNCTION recur._resumed_run IS 'Internal: when an action fires that is resumed; raises if it can not be';

CREATE FUNCTION recur._delete_action() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    definition recur.definitions;
    cancelled  bigint;
BEGIN
    PERFORM FROM recur.timers AS t WHERE t.action_id = OLD.id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    DELETE FROM recur.definitions AS d WHERE d.id = OLD.id RETURNING d.* INTO definition;
    -- Only now: a dispatch that somebody triggered meanwhile has held the definition until it could be seen.
    cancelled := recur._cancel_pending(OLD.id, 'the action was deleted');
    IF NOT definition.duplicate THEN
        PERFORM recur._promote_duplicate(definition);
    END IF;
    PERFORM recur._record_event('action.deleted', OLD.id, definition.owner, recur._identity(definition)
        || jsonb_build_object('schedule', definition.schedule, 'timezone', definition.timezone, 'cancelled_dispatches', cancelled));
    RETURN OLD;
END
$$;
COMMENT ON FUNCTION recur._delete_action IS 'Internal: what a DELETE from recur.recurring_actions does';

-- In the order of their names.
CREATE TRIGGER check_owner INSTEAD OF INSERT ON recur.recurring_actions
    FOR EACH ROW EXECUTE FUNCTION recur._check_owner();
CREATE TRIGGER insert_action INSTEAD OF INSERT ON recur.recurring_actions
    FOR EACH ROW EXECUTE FUNCTION recur._insert_action();
CREATE TRIGGER update_action INSTEAD OF UPDATE ON recur.recurring_actions
    FOR EACH ROW EXECUTE FUNCTION recur._update_action();
CREATE TRIGGER delete_action INSTEAD OF DELETE ON recur.recurring_actions
    FOR EACH ROW EXECUTE FUNCTION recur._delete_action();
