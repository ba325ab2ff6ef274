-- What all other files need: schemas, and the roles that work on the tables.

-- Text is read as UTF-8 in Rust, so a database in another encoding is refused here instead of failing at the first
-- accent.
DO $$
BEGIN
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE feature_not_supported USING
            MESSAGE = format('pg_recur needs a database in UTF8, and "%s" is in %s', current_database(),
                             current_setting('server_encoding')),
            HINT = 'CREATE DATABASE name ENCODING ''UTF8'' TEMPLATE template0 makes one.';
    END IF;
END
$$;

-- Without IF NOT EXISTS: the owner of an existing schema could drop the extension's objects.
CREATE SCHEMA recur;
COMMENT ON SCHEMA recur IS 'pg_recur: recurring actions, their dispatches, and the functions that run them';
CREATE SCHEMA recur_internal;
COMMENT ON SCHEMA recur_internal IS
    'pg_recur: tables and helpers behind schema recur; users read and write through schema recur';

-- Two roles without logins and members:
-- * recur_engine reads and writes the tables, for workers and for functions, whichever role calls them. The role owns
--   no object, so a trigger or an index expression that runs as this role can reach only the rows of pg_recur.
-- * recur_views owns the view that authors write to, and may only read the tables behind the view: a role that may lock
--   a view for writing may lock its tables as far as the owner of the view may.
DO $$
DECLARE
    wanted record;
BEGIN
    FOR wanted IN
        VALUES ('recur_engine', 'pg_recur: reads and writes the tables of the extension in every database that has it'),
               ('recur_views', 'pg_recur: owns the view that authors write to, in every database that has it')
    LOOP
        IF NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = wanted.column1) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS',
                               wanted.column1);
                EXECUTE format('COMMENT ON ROLE %I IS %L', wanted.column1, wanted.column2);
            EXCEPTION
                -- Installed in another database at the same time. The role is checked below.
                WHEN duplicate_object OR unique_violation THEN NULL;
            END;
        END IF;
        -- A role that this snapshot does not show is not trusted.
        IF NOT EXISTS (SELECT FROM pg_roles AS r
                        WHERE r.rolname = wanted.column1
                          AND NOT (r.rolcanlogin OR r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication
                                   OR r.rolbypassrls))
           OR EXISTS (SELECT FROM pg_auth_members AS m
                       WHERE m.roleid = wanted.column1::regrole OR m.member = wanted.column1::regrole) THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('role "%s" exists and is not what pg_recur needs', wanted.column1),
                DETAIL = 'It may neither log in, nor have attributes, nor be a member of a role, nor have members.',
                HINT = 'Rename or drop that role, then create the extension again.';
        END IF;
    END LOOP;
END
$$;
