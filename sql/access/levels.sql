-- Who may do what. PUBLIC has no rights; recur.grant_access gives a role a level. Views and functions decide which rows
-- a role sees: those of owners whose rights the role has, and for an admin all rows.

-- What each level may call. A new function is named here, or no role can call it.
CREATE FUNCTION recur_internal.functions_of(level text) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(array_agg(granted.name), '{}') FROM (
        SELECT unnest(ARRAY[
            'is_valid_schedule', 'preview', 'next_occurrence', 'describe', 'lint', 'tzdata_version', 'get', 'id_of',
            'list', 'history', 'context_history', 'compare', 'forecast', 'explain',
            'action_id', 'owner_name', 'default_lease', 'visible_owners', 'words', 'matching', 'with_changes',
            'runs_left', 'compared', 'checked_limit', 'checked_instant', 'checked_count',
            'occurrences_by_minute', 'occurrences_around', 'counts_from_start', 'ago', 'explain_dispatch',
            'explain_skip', 'explain_absence', 'explain_occurrence', 'dispatch_id', 'canonical_schedule',
            'canonical_timezone', 'describe_within', 'hold_reason', 'number_in']) AS name
         WHERE functions_of.level IN ('reader', 'author', 'consumer', 'sql', 'admin')
        UNION ALL
        SELECT unnest(ARRAY[
            'create', 'update', 'pause', 'resume', 'delete', 'pause_all', 'resume_all', 'restore_context', 'trigger',
            'backfill', 'enqueue', 'receive', 'reassign_owner', 'forget_subject', 'set_journey', 'drop_journey',
            'schedule_journey', 'create_many', 'create_endpoint', 'update_endpoint', 'drop_endpoint',
            'rotate_webhook_secret', 'resume_endpoint', 'create_webhook', 'enqueue_webhook',
            'begin_request', 'finish_request'])
         WHERE functions_of.level IN ('author', 'sql', 'admin')
        UNION ALL
        SELECT unnest(ARRAY['create_sql', 'enqueue_sql', 'set_handler', 'drop_handler', 'arm_sql', 'runs_sql',
                            'import_pg_cron', 'read_pg_cron', 'pg_cron_problems', 'pg_cron_reading', 'pg_cron_plan',
                            'pg_cron_job', 'pg_cron_note', 'pg_cron_deactivation', 'pg_cron_elsewhere'])
         WHERE functions_of.level IN ('sql', 'admin')
        UNION ALL
        -- What runs is stopped, and tried again, by those who write it: there is no consumer.
        SELECT unnest(ARRAY['cancel', 'retry']) WHERE functions_of.level = 'sql'
        UNION ALL
        SELECT unnest(ARRAY[
            'claim', 'complete', 'complete_many', 'fail', 'fail_many', 'extend', 'release', 'cancel', 'retry',
            'fail_interactive'])
         WHERE functions_of.level IN ('consumer', 'admin')
        UNION ALL
        SELECT unnest(ARRAY['clock', 'help'])
         WHERE functions_of.level IN ('reader', 'author', 'consumer', 'sql', 'monitor', 'ticker', 'deliverer', 'admin')
        UNION ALL
        SELECT 'owner_name' WHERE functions_of.level = 'monitor'
        UNION ALL
        SELECT 'tick' WHERE functions_of.level IN ('ticker', 'admin')
        UNION ALL
        -- What is claimed comes with the signing secrets of all owners.
        SELECT unnest(ARRAY['route_webhooks', 'claim_webhooks', 'extend_webhook', 'release_webhook', 'report_webhook'])
         WHERE functions_of.level IN ('deliverer', 'admin')
        UNION ALL
        SELECT unnest(ARRAY['stats', 'workers', 'metrics']) WHERE functions_of.level IN ('monitor', 'admin')
        UNION ALL
        SELECT unnest(ARRAY['settings_in_force', 'sees_all'])
         WHERE functions_of.level IN ('reader', 'author', 'consumer', 'sql', 'monitor', 'admin')
        UNION ALL
        SELECT unnest(ARRAY['recover', 'purge', 'doctor', 'retention', 'admin', 'grant_access', 'revoke_access',
                            'set_quota', 'mark_test_database', 'set_clock', 'set_setting', 'reset_setting', 'arm',
                            'expect_move'])
         WHERE functions_of.level = 'admin') AS granted
$$;
COMMENT ON FUNCTION recur_internal.functions_of IS
    'Internal: the functions that a level of recur.grant_access may call';

CREATE FUNCTION recur_internal.views_of(level text) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE
        WHEN level IN ('reader', 'author', 'consumer', 'sql')
            THEN '{recurring_actions,dispatches,events,contexts,overview,dead_letters,journeys,settings,handlers,'
                 'runs,webhook_endpoints}'::text[]
        WHEN level = 'monitor' THEN '{monitoring,stats,workers,settings}'
        WHEN level = 'admin'
            THEN '{recurring_actions,dispatches,events,contexts,overview,dead_letters,journeys,settings,monitoring,'
                 'stats,workers,quotas,handlers,runs,webhook_endpoints}'
        ELSE '{}' END
$$;
COMMENT ON FUNCTION recur_internal.views_of IS 'Internal: the views that a level of recur.grant_access may read';

-- Every level may call functions, so the lists above are the list of levels.
CREATE FUNCTION recur_internal.access_problems(
    role name, level text, OUT sqlstate text, OUT message text, OUT hint text
) RETURNS SETOF record
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT '22023', format('invalid level "%s": must be reader, author, consumer, sql, monitor, ticker, '
                           'deliverer or admin',
                           coalesce(access_problems.level, 'NULL')),
           'docs/security.md has what each level may do.'
     WHERE recur_internal.functions_of(coalesce(access_problems.level, '')) = '{}'
     UNION ALL
    SELECT '42704', format('invalid role "%s": there is no such role', access_problems.role), 'CREATE ROLE makes one.'
     WHERE NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = access_problems.role)
     UNION ALL
    -- Their rights are those that the extension works with: without them, the workers of the database would stop.
    SELECT '22023', format('invalid role "%s": the extension itself depends on the rights of this role',
                           access_problems.role),
           'Levels are for roles of your own.'
     WHERE access_problems.role IN ('recur_engine', 'recur_views', 'pg_database_owner')
$$;
COMMENT ON FUNCTION recur_internal.access_problems IS
    'Internal: why a role can have no level, or not this one; none of those that the extension depends on can';

-- The levels that roles have. The rights of a level are in the access lists of views and functions. A dump has these
-- lists, too, but only a superuser can restore them: the rows of this table restore the rights for the database's
-- owner.
CREATE TABLE recur_internal.levels (
    role  oid  NOT NULL,
    name  text NOT NULL,
    level text NOT NULL,
    CONSTRAINT levels_pkey PRIMARY KEY (role, level)
);
COMMENT ON TABLE recur_internal.levels IS 'The levels that recur.grant_access has given to roles';
COMMENT ON COLUMN recur_internal.levels.role IS 'The role, by its oid in this cluster';
COMMENT ON COLUMN recur_internal.levels.name IS
    'The name of the role when the row was written; a restore finds the role by it';
COMMENT ON COLUMN recur_internal.levels.level IS
    'reader, author, consumer, sql, monitor, ticker, deliverer or admin';
-- Levels of dropped roles are not dumped: in another cluster a role of the same name would get them.
SELECT pg_catalog.pg_extension_config_dump('recur_internal.levels',
                                           'WHERE role IN (SELECT r.oid FROM pg_catalog.pg_roles AS r)');

-- Runs as the owner of the objects, a superuser, so that the objects' owner is the grantor, also while the database's
-- owner restores.
CREATE FUNCTION recur_internal.level_inserted() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    object  text;
    problem record;
BEGIN
    NEW.role := (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = NEW.name);
    IF NEW.role IS NULL THEN
        RAISE WARNING USING
            MESSAGE = format('level "%s" is not restored: there is no role "%s"', NEW.level, NEW.name),
            HINT = 'Create the role, then call recur.grant_access.';
        RETURN NULL;
    END IF;
    FOR problem IN SELECT p.* FROM recur_internal.access_problems(NEW.name, NEW.level) AS p LOOP
        RAISE EXCEPTION USING ERRCODE = problem.sqlstate, MESSAGE = problem.message, HINT = problem.hint;
    END LOOP;
    EXECUTE format('GRANT USAGE ON SCHEMA recur, recur_internal TO %I', NEW.name);
    FOREACH object IN ARRAY recur_internal.views_of(NEW.level) LOOP
        EXECUTE format('GRANT SELECT ON recur.%I TO %I', object, NEW.name);
    END LOOP;
    IF NEW.level IN ('author', 'sql', 'admin') THEN
        EXECUTE format('GRANT INSERT, UPDATE, DELETE ON recur.recurring_actions TO %I', NEW.name);
    END IF;
    FOR object IN
        SELECT p.oid::regprocedure::text FROM pg_proc AS p
         WHERE p.pronamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)
           AND p.proname = ANY (recur_internal.functions_of(NEW.level))
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', object, NEW.name);
    END LOOP;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION recur_internal.level_inserted IS
    'Internal: grants the rights of a level, to the role of the name in a new row';
CREATE TRIGGER grant_rights BEFORE INSERT ON recur_internal.levels
    FOR EACH ROW EXECUTE FUNCTION recur_internal.level_inserted();

-- The owner of the database and admins may call it.
CREATE FUNCTION recur.grant_access(role name, level text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    problem record;
BEGIN
    FOR problem IN SELECT p.* FROM recur_internal.access_problems(grant_access.role, grant_access.level) AS p LOOP
        RAISE EXCEPTION USING ERRCODE = problem.sqlstate, MESSAGE = problem.message, HINT = problem.hint;
    END LOOP;
    -- Granted again if the role has the level already: an upgrade may have added functions.
    DELETE FROM recur_internal.levels AS l
     WHERE l.role = quote_ident(grant_access.role)::regrole AND l.level = grant_access.level;
    INSERT INTO recur_internal.levels (name, level) VALUES (grant_access.role, grant_access.level);
    -- A role becomes an owner when it first writes. Two sessions of a new role would wait for each other then, for as
    -- long as the first one's transaction is open.
    IF grant_access.level IN ('author', 'sql', 'admin') THEN
        INSERT INTO recur_internal.owners (role, name)
        VALUES (quote_ident(grant_access.role)::regrole, grant_access.role)
            ON CONFLICT DO NOTHING;
    END IF;
END
$$;
COMMENT ON FUNCTION recur.grant_access IS
    'Grants a role a level: reader (looks), author (defines actions), consumer (runs dispatches), '
    'sql (author, and makes the database run SQL), monitor (sees counts '
    'and workers), ticker (calls recur.tick), deliverer (delivers webhooks of all owners) or admin (everything, of all '
    'owners)';

CREATE FUNCTION recur.revoke_access(role name) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    kind    text;
    problem record;
BEGIN
    FOR problem IN SELECT p.* FROM recur_internal.access_problems(revoke_access.role, 'reader') AS p LOOP
        RAISE EXCEPTION USING ERRCODE = problem.sqlstate, MESSAGE = problem.message, HINT = problem.hint;
    END LOOP;
    DELETE FROM recur_internal.levels AS l WHERE l.role = quote_ident(revoke_access.role)::regrole;
    EXECUTE format('REVOKE ALL ON SCHEMA recur, recur_internal FROM %I', revoke_access.role);
    FOREACH kind IN ARRAY '{TABLES,SEQUENCES,FUNCTIONS}'::text[] LOOP
        EXECUTE format('REVOKE ALL ON ALL %s IN SCHEMA recur, recur_internal FROM %I', kind, revoke_access.role);
    END LOOP;
END
$$;
COMMENT ON FUNCTION recur.revoke_access IS
    'Revokes all levels of a role, also before the role is dropped';
