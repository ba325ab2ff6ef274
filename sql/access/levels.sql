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
            'action_id', 'owner_name', 'sees_all', 'visible_owners', 'words', 'matching', 'with_changes', 'runs_left',
            'occurrences_by_minute', 'occurrences_around', 'counts_from_start', 'ago', 'fit', 'explain_dispatch',
            'explain_skip', 'explain_absence', 'explain_occurrence', 'dispatch_id', 'canonical_schedule',
            'canonical_timezone', 'describe_within']) AS name
         WHERE functions_of.level IN ('reader', 'author', 'consumer', 'admin')
        UNION ALL
        SELECT unnest(ARRAY[
            'create', 'update', 'pause', 'resume', 'delete', 'pause_all', 'resume_all', 'restore_context', 'trigger',
            'backfill', 'enqueue', 'receive'])
         WHERE functions_of.level IN ('author', 'admin')
        UNION ALL
        SELECT unnest(ARRAY[
            'claim', 'complete', 'complete_many', 'fail', 'fail_many', 'extend', 'release', 'cancel', 'retry'])
         WHERE functions_of.level IN ('consumer', 'admin')
        UNION ALL
        SELECT 'tick' WHERE functions_of.level IN ('ticker', 'admin')
        UNION ALL
        SELECT unnest(ARRAY['stats', 'workers']) WHERE functions_of.level IN ('monitor', 'admin')
        UNION ALL
        SELECT unnest(ARRAY['recover', 'purge', 'doctor', 'retention', 'admin', 'grant_access', 'revoke_access'])
         WHERE functions_of.level = 'admin') AS granted
$$;
COMMENT ON FUNCTION recur_internal.functions_of IS
    'Internal: the functions that a level of recur.grant_access may call';

CREATE FUNCTION recur_internal.views_of(level text) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE
        WHEN level IN ('reader', 'author', 'consumer')
            THEN '{recurring_actions,dispatches,events,contexts,overview,dead_letters}'::text[]
        WHEN level = 'monitor' THEN '{stats,workers}'
        WHEN level = 'admin'
            THEN '{recurring_actions,dispatches,events,contexts,overview,dead_letters,stats,workers}'
        ELSE '{}' END
$$;
COMMENT ON FUNCTION recur_internal.views_of IS 'Internal: the views that a level of recur.grant_access may read';

CREATE FUNCTION recur_internal.check_role(role name) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = check_role.role) THEN
        RAISE undefined_object USING
            MESSAGE = format('invalid role "%s": there is no such role', check_role.role),
            HINT = 'CREATE ROLE makes one.';
    END IF;
    -- Their rights are those that the extension works with: without them, the workers of the database would stop.
    IF check_role.role IN ('recur_engine', 'recur_views', 'pg_database_owner') THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid role "%s": the extension itself depends on the rights of this role',
                             check_role.role),
            HINT = 'Levels are for roles of your own.';
    END IF;
END
$$;
COMMENT ON FUNCTION recur_internal.check_role IS
    'Internal: raises unless there is such a role, and it is none of those that the extension depends on';

-- Every level may call functions, so the lists above are the list of levels.
CREATE FUNCTION recur_internal.check_level(level text) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF recur_internal.functions_of(coalesce(check_level.level, '')) = '{}' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid level "%s": must be reader, author, consumer, monitor, ticker or admin',
                             coalesce(check_level.level, 'NULL'));
    END IF;
END
$$;
COMMENT ON FUNCTION recur_internal.check_level IS 'Internal: raises unless there is such a level';

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
COMMENT ON COLUMN recur_internal.levels.level IS 'reader, author, consumer, monitor, ticker or admin';
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
    object text;
BEGIN
    PERFORM recur_internal.check_level(NEW.level);
    NEW.role := (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = NEW.name);
    IF NEW.role IS NULL THEN
        RAISE WARNING USING
            MESSAGE = format('level "%s" is not restored: there is no role "%s"', NEW.level, NEW.name),
            HINT = 'Create the role, then call recur.grant_access.';
        RETURN NULL;
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA recur, recur_internal TO %I', NEW.name);
    FOREACH object IN ARRAY recur_internal.views_of(NEW.level) LOOP
        EXECUTE format('GRANT SELECT ON recur.%I TO %I', object, NEW.name);
    END LOOP;
    IF NEW.level IN ('author', 'admin') THEN
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
BEGIN
    PERFORM recur_internal.check_level(grant_access.level);
    PERFORM recur_internal.check_role(grant_access.role);
    -- Granted again if the role has the level already: an upgrade may have added functions.
    DELETE FROM recur_internal.levels AS l
     WHERE l.role = quote_ident(grant_access.role)::regrole AND l.level = grant_access.level;
    INSERT INTO recur_internal.levels (name, level) VALUES (grant_access.role, grant_access.level);
    -- A role becomes an owner when it first writes. Two sessions of a new role would wait for each other then, for as
    -- long as the first one's transaction is open.
    IF grant_access.level IN ('author', 'admin') THEN
        INSERT INTO recur_internal.owners (role, name)
        VALUES (quote_ident(grant_access.role)::regrole, grant_access.role)
            ON CONFLICT DO NOTHING;
    END IF;
END
$$;
COMMENT ON FUNCTION recur.grant_access IS
    'Grants a role a level: reader (looks), author (defines actions), consumer (runs dispatches), monitor (sees counts '
    'and workers), ticker (calls recur.tick) or admin (everything, of all owners)';

CREATE FUNCTION recur.revoke_access(role name) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    kind text;
BEGIN
    PERFORM recur_internal.check_role(revoke_access.role);
    DELETE FROM recur_internal.levels AS l WHERE l.role = quote_ident(revoke_access.role)::regrole;
    EXECUTE format('REVOKE ALL ON SCHEMA recur, recur_internal FROM %I', revoke_access.role);
    FOREACH kind IN ARRAY '{TABLES,SEQUENCES,FUNCTIONS}'::text[] LOOP
        EXECUTE format('REVOKE ALL ON ALL %s IN SCHEMA recur, recur_internal FROM %I', kind, revoke_access.role);
    END LOOP;
END
$$;
COMMENT ON FUNCTION recur.revoke_access IS
    'Revokes all levels of a role, also before the role is dropped';
