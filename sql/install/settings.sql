-- What a database decides for itself. The server's configuration is the default: neither can ALTER DATABASE set what a
-- reload sets, nor could the launcher read it, which is connected to no database.

CREATE TABLE recur_internal.settings (
    namespace text,
    name      text NOT NULL,
    value     text NOT NULL,
    CONSTRAINT settings_once UNIQUE NULLS NOT DISTINCT (namespace, name),
    CONSTRAINT settings_short
        CHECK (octet_length(namespace) <= 1000 AND octet_length(name) <= 100 AND octet_length(value) <= 1000)
);
COMMENT ON TABLE recur_internal.settings IS 'The settings that this database decides for itself';
COMMENT ON COLUMN recur_internal.settings.namespace IS 'The namespace that it is for; NULL for all that have none';
COMMENT ON COLUMN recur_internal.settings.name IS 'The setting';
COMMENT ON COLUMN recur_internal.settings.value IS 'Its value, as in the configuration file';
SELECT pg_catalog.pg_extension_config_dump('recur_internal.settings', '');
CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON recur_internal.settings
    FOR EACH STATEMENT EXECUTE FUNCTION recur_internal.cached_table_changed();
ALTER TABLE recur_internal.settings ENABLE ALWAYS TRIGGER changed;

CREATE FUNCTION recur_internal.checked_setting(name text, value text, namespace text) RETURNS text
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'checked_setting_wrapper';
COMMENT ON FUNCTION recur_internal.checked_setting IS
    'Internal: the full name of a setting; raises where a database may not give it this value';

-- The owner of the database and admins may call it.
CREATE FUNCTION recur.set_setting(name text, value text, namespace text DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    -- Every process holds all rows in memory.
    most CONSTANT int := 10000;
    full_name text := recur_internal.checked_setting(set_setting.name, set_setting.value, set_setting.namespace);
BEGIN
    IF set_setting.value IS NULL THEN
        DELETE FROM recur_internal.settings AS s
         WHERE s.name = full_name AND s.namespace IS NOT DISTINCT FROM set_setting.namespace;
        RETURN;
    END IF;
    INSERT INTO recur_internal.settings AS s (namespace, name, value)
    VALUES (set_setting.namespace, full_name, set_setting.value)
        ON CONFLICT ON CONSTRAINT settings_once DO UPDATE SET value = EXCLUDED.value;
    IF (SELECT count(*) FROM recur_internal.settings) > most THEN
        RAISE configuration_limit_exceeded USING
            MESSAGE = format('a database can decide %s settings, and has', most),
            HINT = 'recur.reset_setting(name, namespace) removes one.';
    END IF;
END
$$;
COMMENT ON FUNCTION recur.set_setting IS
    'Decides a setting for this database, or for a namespace of it, from the commit on; NULL leaves it to the server';

CREATE FUNCTION recur.reset_setting(name text, namespace text DEFAULT NULL) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$ SELECT recur.set_setting(recur_internal.checked_setting(name, NULL, namespace), NULL, namespace) $$;
COMMENT ON FUNCTION recur.reset_setting IS 'Leaves a setting to the server''s configuration again';

CREATE FUNCTION recur_internal.settings_in_force(
    OUT namespace text, OUT name text, OUT value text, OUT source text
) RETURNS SETOF record
    LANGUAGE c STABLE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'settings_in_force_wrapper';
COMMENT ON FUNCTION recur_internal.settings_in_force IS
    'Internal: the settings that a database may decide; without a value, the server''s is in force';

CREATE FUNCTION recur_internal.ignored_settings(OUT namespace text, OUT name text, OUT problem text)
    RETURNS SETOF record
    LANGUAGE c STABLE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'ignored_settings_wrapper';
COMMENT ON FUNCTION recur_internal.ignored_settings IS 'Internal: rows of recur_internal.settings that do not hold';
