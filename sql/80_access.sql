-- Who may do what. PUBLIC has nothing. A role sees what belongs to owners that it is a member of, an admin sees all.

-- Empty: the right to call it is what makes an admin.
CREATE FUNCTION recur._admin() RETURNS void
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
AS '';
COMMENT ON FUNCTION recur._admin IS 'Internal: whoever may execute this function is an admin';

CREATE FUNCTION recur._is_admin() RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'is_admin_wrapper';
COMMENT ON FUNCTION recur._is_admin IS 'Internal: may the current role see everything?';

CREATE FUNCTION recur._visible_owners() RETURNS text[]
    LANGUAGE c STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'visible_owners_wrapper';
COMMENT ON FUNCTION recur._visible_owners IS 'Internal: the owners that the current role is a member of';

-- The sub-selects are evaluated once a query, not once a row.
ALTER TABLE recur.definitions ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_and_admins ON recur.definitions
    USING (owner = ANY ((SELECT recur._visible_owners())::text[]) OR (SELECT recur._is_admin()));
ALTER TABLE recur.live_dispatches ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_and_admins ON recur.live_dispatches
    USING (owner = ANY ((SELECT recur._visible_owners())::text[]) OR (SELECT recur._is_admin()));
-- Authors and consumers insert rows, by way of recur.enqueue and recur.retry or by hand. A row of one's own must not speak for an
-- action of somebody else, nor take the id that the dispatch of his occurrence will have, nor bear what the dispatcher, who reads
-- the rows of everybody, could stumble over. The dispatcher itself owns the table, and a claim is an UPDATE: neither is asked.
CREATE FUNCTION recur._is_id_of(id uuid, action_id uuid, scheduled_at timestamptz) RETURNS boolean
    LANGUAGE c IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'is_id_of_wrapper';
COMMENT ON FUNCTION recur._is_id_of IS
    'Internal: may a dispatch have this id, a random one or that of its occurrence?';

CREATE FUNCTION recur._is_hidden(action_id uuid) RETURNS boolean
    LANGUAGE c STABLE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'is_hidden_wrapper';
COMMENT ON FUNCTION recur._is_hidden IS 'Internal: is there such an action that the current role does not see?';

CREATE POLICY speaks_for_itself ON recur.live_dispatches AS RESTRICTIVE FOR INSERT
    WITH CHECK (
        recur._is_id_of(id, action_id, scheduled_at)
        AND (action_id IS NULL OR NOT recur._is_hidden(action_id))
        AND isfinite(scheduled_at) AND isfinite(available_at) AND isfinite(created_at)
        AND (notify_channel IS NULL OR octet_length(notify_channel) BETWEEN 1 AND 63)
        AND greatest(length(namespace), length(tenant), length(provider), length(action_type), length(subject),
                     length(lock_group)) <= 255
        AND releases >= 0 AND releases <= attempt AND attempt < 1000000
        AND (lease IS NULL OR recur._check_interval('lease', lease, false))
        AND (retry_backoff IS NULL OR recur._check_backoff(retry_backoff)));

ALTER TABLE recur.finished_dispatches ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_and_admins ON recur.finished_dispatches
    USING (owner = ANY ((SELECT recur._visible_owners())::text[]) OR (SELECT recur._is_admin()));
ALTER TABLE recur.events ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_and_admins ON recur.events
    USING (owner = ANY ((SELECT recur._visible_owners())::text[]) OR (SELECT recur._is_admin()));
-- These belong to whoever sees their definition.
ALTER TABLE recur.timers ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_and_admins ON recur.timers
    USING (EXISTS (SELECT FROM recur.definitions AS d WHERE d.id = action_id));
ALTER TABLE recur.progress ENABLE ROW LEVEL SECURITY;
-- OFFSET 0: looked up for each row, which a claim has few of. Else the planner might read all definitions first, while it believes
-- that there are none.
CREATE POLICY members_and_admins ON recur.progress
    USING (EXISTS (SELECT FROM recur.definitions AS d WHERE d.id = action_id OFFSET 0));
ALTER TABLE recur.contexts ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_and_admins ON recur.contexts
    USING (EXISTS (SELECT FROM recur.definitions AS d WHERE d.id = action_id));

-- What the levels consist of. A new function is named here, or nobody can call it.
CREATE FUNCTION recur._functions_of(level text) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT array_agg(name) FROM (
        SELECT unnest(ARRAY[
            'is_valid_schedule', 'preview', 'next_occurrence', 'describe', 'tzdata_version',
            'get', 'id_of', 'list', 'history', 'context_history', 'compare', 'forecast', 'explain']) AS name
        UNION ALL
        SELECT unnest(ARRAY[
            'create', 'update', 'pause', 'resume', 'delete', 'pause_all', 'resume_all', 'restore_context',
            'trigger', '_dispatch_by_hand', 'backfill', '_dispatch_missing', 'enqueue', 'receive', '_enqueue', '_new_id',
            '_announce', '_announce_one', '_is_dispatching'])
         WHERE _functions_of.level IN ('author', 'admin')
        UNION ALL
        SELECT unnest(ARRAY[
            'claim', '_group_is_free', '_known_priority', '_know_priority', '_marked_time', '_marked_creation',
            '_mark_is_worn', '_is_slow_again', '_mark', '_move_mark',
            'complete', 'complete_many', 'fail', 'fail_many', 'extend', 'release', 'cancel', 'retry',
            '_standing', '_refuse_report', '_check_lengths', '_accept', '_answer', '_finish', '_try_again', '_announce',
            '_tell_contact', '_is_dispatching'])
         WHERE _functions_of.level IN ('consumer', 'admin')
        UNION ALL
        SELECT unnest(ARRAY[
            'tick', 'recover', '_expire_leases', '_record_recoveries', 'purge', 'doctor', '_stats', '_workers', '_admin'])
         WHERE _functions_of.level = 'admin') AS granted
$$;
COMMENT ON FUNCTION recur._functions_of IS 'Internal: what a level of recur.grant_access may call';

CREATE FUNCTION recur.grant_access(role name, level text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    object text;
BEGIN
    PERFORM recur._check_choice('level', grant_access.level, '{reader,author,consumer,admin}');
    IF NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = grant_access.role) THEN
        RAISE undefined_object USING
            MESSAGE = format('invalid role "%s": there is no such role', grant_access.role),
            HINT = 'CREATE ROLE makes one.';
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA recur TO %I', grant_access.role);

    -- All of these show a role its own rows only. The views read the tables as whoever asks.
    FOREACH object IN ARRAY ARRAY[
        'recurring_actions', 'definitions', 'timers', 'progress', 'contexts',
        'dispatches', 'live_dispatches', 'finished_dispatches', 'history_turns',
        'events', 'overview', 'dead_letters']
    LOOP
        EXECUTE format('GRANT SELECT ON recur.%I TO %I', object, grant_access.role);
    END LOOP;
    IF grant_access.level = 'admin' THEN
        EXECUTE format('GRANT SELECT ON recur.stats, recur.workers TO %I', grant_access.role);
    END IF;
    IF grant_access.level IN ('author', 'admin') THEN
        EXECUTE format('GRANT INSERT, UPDATE, DELETE ON recur.recurring_actions TO %I', grant_access.role);
        -- To enqueue: row-level security lets nobody write in another's name.
        EXECUTE format('GRANT INSERT, UPDATE (payload, raw_payload, metadata) ON recur.live_dispatches TO %I', grant_access.role);
    END IF;
    IF grant_access.level IN ('consumer', 'admin') THEN
        -- A dispatch moves between the tables, and a consumer changes nothing of it but its fate.
        EXECUTE format('GRANT INSERT, DELETE ON recur.live_dispatches, recur.finished_dispatches TO %I', grant_access.role);
        EXECUTE format('GRANT UPDATE (status, attempt, releases, max_attempts, available_at, claimed_by, lease_expires_at,
                                      started_at, cancel_requested, context, context_version, error, errors)
                           ON recur.live_dispatches TO %I', grant_access.role);
        EXECUTE format('GRANT UPDATE (completed_count, failed_count, failed_in_a_row, context, context_version, context_left_by)
                           ON recur.progress TO %I', grant_access.role);
    END IF;

    -- Helpers that only look do so with the rights of their caller: they are for everybody.
    FOR object IN
        SELECT p.oid::regprocedure::text FROM pg_proc AS p
         WHERE p.pronamespace = 'recur'::regnamespace
           AND (p.proname = ANY (recur._functions_of(grant_access.level))
                OR (p.proname LIKE '\_%' AND p.proname <> '_admin' AND p.provolatile <> 'v' AND NOT p.prosecdef
                    AND p.prorettype <> 'trigger'::regtype))
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', object, grant_access.role);
    END LOOP;
END
$$;
COMMENT ON FUNCTION recur.grant_access IS
    'Grants a role what it needs: reader (look), author (and define actions), consumer (look and run dispatches), admin (everything, of all owners)';

CREATE FUNCTION recur.revoke_access(role name) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = revoke_access.role) THEN
        RAISE undefined_object USING
            MESSAGE = format('invalid role "%s": there is no such role', revoke_access.role);
    END IF;
    EXECUTE format('REVOKE ALL ON SCHEMA recur FROM %I', revoke_access.role);
    EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA recur FROM %I', revoke_access.role);
    EXECUTE format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA recur FROM %I', revoke_access.role);
    EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA recur FROM %I', revoke_access.role);
END
$$;
COMMENT ON FUNCTION recur.revoke_access IS
    'Takes back whatever recur.grant_access has granted; also what a role needs before it can be dropped';

REVOKE ALL ON SCHEMA recur FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA recur FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA recur FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA recur FROM PUBLIC;
