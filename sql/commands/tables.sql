-- What the database itself runs: SQL actions, and handlers of action types.
--
-- What runs, runs as the owner of the action, with all rights of that role. So only a role that may act as the owner
-- can write it, and its level must be "sql". The database's owner can insert rows of any owner, because that is what a
-- restore does. Nothing of an owner runs before a role that may act as the owner has armed it: the first time, by
-- writing something to run; after a restore, or after rows were inserted by hand, with recur.arm_sql.

-- An empty function: the right to execute it is what lets a role make the database run SQL.
CREATE FUNCTION recur_internal.runs_sql() RETURNS void
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
AS '';
COMMENT ON FUNCTION recur_internal.runs_sql IS
    'Internal: a role that may execute this function may create SQL actions and handlers';

-- Not dumped: in another database nothing is armed.
CREATE TABLE recur_internal.armed_owners (
    owner_id int         NOT NULL,
    role     oid         NOT NULL,
    armed_by text        NOT NULL,
    armed_at timestamptz NOT NULL DEFAULT recur.clock(),
    CONSTRAINT armed_owners_pkey PRIMARY KEY (owner_id)
);
COMMENT ON TABLE recur_internal.armed_owners IS 'The owners whose SQL actions and handlers run';
COMMENT ON COLUMN recur_internal.armed_owners.owner_id IS
    'The owner; 0 for the note that rows were inserted by hand in this database';
COMMENT ON COLUMN recur_internal.armed_owners.role IS 'The role that its SQL runs as; it runs as no other';
COMMENT ON COLUMN recur_internal.armed_owners.armed_by IS 'The role that armed it';
COMMENT ON COLUMN recur_internal.armed_owners.armed_at IS 'When it was armed';
CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON recur_internal.armed_owners
    FOR EACH STATEMENT EXECUTE FUNCTION recur_internal.cached_table_changed();
ALTER TABLE recur_internal.armed_owners ENABLE ALWAYS TRIGGER changed;

-- The function is stored as the text of its signature: a type of reg* would stop pg_upgrade.
CREATE TABLE recur_internal.handlers (
    owner_id   int         NOT NULL,
    pattern    text        NOT NULL,
    function   text        NOT NULL,
    function_owner text    NOT NULL,
    timeout    text,
    created_at timestamptz NOT NULL DEFAULT recur.clock(),
    CONSTRAINT handlers_pkey PRIMARY KEY (owner_id, pattern),
    CONSTRAINT handlers_short CHECK (octet_length(pattern) <= 1024 AND octet_length(function) <= 1024
                                     AND octet_length(function_owner) <= 100
                                     AND octet_length(timeout) <= 100)
);
COMMENT ON TABLE recur_internal.handlers IS 'Functions that run dispatches; read recur.handlers instead';
COMMENT ON COLUMN recur_internal.handlers.owner_id IS 'The owner, whose dispatches the function runs';
COMMENT ON COLUMN recur_internal.handlers.pattern IS 'Which action types: one, or the beginning of some and a *';
COMMENT ON COLUMN recur_internal.handlers.function IS 'The function, with its schema and the types of its arguments';
COMMENT ON COLUMN recur_internal.handlers.function_owner IS
    'The owner of the function when the handler was set; a function of this name that belongs to another role is not '
    'called';
COMMENT ON COLUMN recur_internal.handlers.timeout IS 'How long a call may take; NULL where statement_timeout decides';
COMMENT ON COLUMN recur_internal.handlers.created_at IS 'When the handler was set';
SELECT pg_catalog.pg_extension_config_dump('recur_internal.handlers', '');
CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON recur_internal.handlers
    FOR EACH STATEMENT EXECUTE FUNCTION recur_internal.cached_table_changed();
ALTER TABLE recur_internal.handlers ENABLE ALWAYS TRIGGER changed;

-- Rows that another role than the engine inserts are a restore's, or written by hand, and may be of any owner. Nothing
-- runs any more of owners that this role may not act as. Only inserting is granted, to the database's owner.
CREATE FUNCTION recur_internal.disarm_owners() RETURNS trigger
    LANGUAGE c
    AS 'MODULE_PATHNAME', 'disarm_owners_wrapper';
COMMENT ON FUNCTION recur_internal.disarm_owners IS
    'Internal: rows were inserted by hand; nothing runs of owners that the current role may not act as, until '
    'recur.arm_sql';
DO $$
DECLARE
    written text;
BEGIN
    FOR written IN
        SELECT unnest('{owners,definitions,progress,contexts,live_dispatches,handlers}'::text[])
         UNION ALL
        SELECT format('finished_dispatches_%s', number) FROM generate_series(0, 8) AS number
    LOOP
        EXECUTE format('CREATE TRIGGER disarm BEFORE INSERT ON recur_internal.%I FOR EACH STATEMENT '
                       'EXECUTE FUNCTION recur_internal.disarm_owners()', written);
        EXECUTE format('ALTER TABLE recur_internal.%I ENABLE ALWAYS TRIGGER disarm', written);
        -- Logical replication runs triggers for rows only; elsewhere this one never fires.
        EXECUTE format('CREATE TRIGGER disarm_replica BEFORE INSERT ON recur_internal.%I FOR EACH ROW '
                       'EXECUTE FUNCTION recur_internal.disarm_owners()', written);
        EXECUTE format('ALTER TABLE recur_internal.%I ENABLE REPLICA TRIGGER disarm_replica', written);
    END LOOP;
END
$$;

CREATE FUNCTION recur_internal.runs_in_database(owner_id int, provider text, action_type text) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'runs_in_database_wrapper';
COMMENT ON FUNCTION recur_internal.runs_in_database IS
    'Internal: true if the database itself runs such a dispatch, because it is an SQL action or has a handler; NULL '
    'if not';
