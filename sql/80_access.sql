-- Who may do what. PUBLIC has nothing. A role sees what belongs to owners that it is a member of, an admin sees all.

REVOKE ALL ON ALL TABLES IN SCHEMA recur FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA recur FROM PUBLIC;

-- Empty: the right to call it is what makes an admin.
CREATE FUNCTION recur._admin() RETURNS void
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
AS '';
COMMENT ON FUNCTION recur._admin IS 'Internal: whoever may execute this function is an admin';
REVOKE ALL ON FUNCTION recur._admin FROM PUBLIC;

CREATE FUNCTION recur._is_admin() RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$ SELECT has_function_privilege(current_user, 'recur._admin()', 'EXECUTE') $$;
COMMENT ON FUNCTION recur._is_admin IS 'Internal: may the current role see everything?';
REVOKE ALL ON FUNCTION recur._is_admin FROM PUBLIC;

CREATE FUNCTION recur._visible_owners() RETURNS name[]
    LANGUAGE sql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$ SELECT array_agg(r.rolname) FROM pg_roles AS r WHERE pg_has_role(current_user, r.oid, 'MEMBER') $$;
COMMENT ON FUNCTION recur._visible_owners IS 'Internal: the owners that the current role is a member of';
REVOKE ALL ON FUNCTION recur._visible_owners FROM PUBLIC;

-- The sub-selects are evaluated once a query, not once a row.
ALTER TABLE recur.definitions ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_and_admins ON recur.definitions
    USING (owner = ANY ((SELECT recur._visible_owners())::name[]) OR (SELECT recur._is_admin()));
ALTER TABLE recur.live_dispatches ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_and_admins ON recur.live_dispatches
    USING (owner = ANY ((SELECT recur._visible_owners())::name[]) OR (SELECT recur._is_admin()));
ALTER TABLE recur.finished_dispatches ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_and_admins ON recur.finished_dispatches
    USING (owner = ANY ((SELECT recur._visible_owners())::name[]) OR (SELECT recur._is_admin()));
ALTER TABLE recur.events ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_and_admins ON recur.events
    USING (owner = ANY ((SELECT recur._visible_owners())::name[]) OR (SELECT recur._is_admin()));
-- These belong to whoever sees their definition.
ALTER TABLE recur.timers ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_and_admins ON recur.timers
    USING (EXISTS (SELECT FROM recur.definitions AS d WHERE d.id = action_id));
ALTER TABLE recur.progress ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_and_admins ON recur.progress
    USING (EXISTS (SELECT FROM recur.definitions AS d WHERE d.id = action_id));

ALTER TABLE recur.contexts ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_and_admins ON recur.contexts
    USING (EXISTS (SELECT FROM recur.definitions AS d WHERE d.id = action_id));

CREATE FUNCTION recur.grant_access(role name, level text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    looking   text[] := '{recur.get(uuid),recur.context_history,recur.id_of,recur.list,recur.history,recur.preview(uuid\,timestamptz\,int),recur.describe(uuid),recur.compare,recur.forecast,'
                        'recur._changed,recur._words,recur._occurrences_by_minute,recur._counts_from_start,recur._dispatch_id,recur._ago,recur._fit,recur._writable_columns,'
                        'recur._is_admin,recur._visible_owners,recur._check_number,recur._check_object,recur._check_choice,'
                        'recur.is_valid_schedule,recur.preview(text\,text\,timestamptz\,int\,timestamptz\,timestamptz\,int\,text\,text),recur.next_occurrence,recur.describe(text\,text),recur.tzdata_version,'
                        'recur._canonical_schedule,recur._canonical_timezone}';
    authoring text[] := '{recur.create,recur.update,recur.pause,recur.resume,recur.delete,recur.pause_all,recur.resume_all,recur.restore_context}';
    consuming text[] := '{recur.claim,recur.complete,recur.complete_many,recur.fail,recur.fail_many,'
                        'recur.extend,recur.release,recur.cancel,recur.retry,'
                        'recur._group_is_free,recur._standing,recur._refuse_report,recur._finish,recur._retry_delay,recur._try_again,recur._check_lengths,recur._accept,recur._answer,recur._announce,recur._history_partition,recur._is_dispatching,recur._tell_contact}';
    operating text[] := '{recur.tick,recur._admin,recur.recover,recur.purge,recur._retention,recur._expire_leases,recur._record_recoveries}';
    functions text[];
BEGIN
    PERFORM recur._check_choice('level', grant_access.level, '{reader,author,consumer,admin}');
    IF NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = grant_access.role) THEN
        RAISE undefined_object USING MESSAGE = format('invalid role "%s": there is no such role', grant_access.role);
    END IF;
    functions := looking || CASE grant_access.level
        WHEN 'author' THEN authoring WHEN 'consumer' THEN consuming
        WHEN 'admin' THEN authoring || consuming || operating ELSE '{}' END;
    EXECUTE format('GRANT USAGE ON SCHEMA recur TO %I', grant_access.role);
    EXECUTE format('GRANT SELECT ON recur.definitions, recur.timers, recur.progress, recur.recurring_actions, recur.overview, recur.dispatches, recur.live_dispatches, recur.finished_dispatches, recur.dead_letters, recur.contexts, recur.history_turns, recur.events TO %I', grant_access.role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', array_to_string(functions, ', '), grant_access.role);
    IF grant_access.level IN ('author', 'admin') THEN
        EXECUTE format('GRANT INSERT, UPDATE, DELETE ON recur.recurring_actions TO %I', grant_access.role);
    END IF;
    IF grant_access.level IN ('consumer', 'admin') THEN
        -- A dispatch moves between the tables, and a consumer changes nothing of it but its fate.
        EXECUTE format('GRANT INSERT, DELETE ON recur.live_dispatches, recur.finished_dispatches TO %I', grant_access.role);
        EXECUTE format('GRANT UPDATE (status, attempt, releases, max_attempts, available_at, claimed_by, lease_expires_at, started_at, cancel_requested, context, context_version, error, errors) ON recur.live_dispatches TO %I', grant_access.role);
        EXECUTE format('GRANT UPDATE (completed_count, failed_count, failed_in_a_row, context, context_version, context_left_by) ON recur.progress TO %I', grant_access.role);
    END IF;
END
$$;
COMMENT ON FUNCTION recur.grant_access IS
    'Grants a role what it needs: reader (look), author (and define actions), consumer (look and run dispatches), admin (everything, of all owners)';
REVOKE ALL ON FUNCTION recur.grant_access FROM PUBLIC;
