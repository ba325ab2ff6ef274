-- Whatever is read of a text in Rust is taken for UTF-8. Better no extension than one that raises errors at the first accent.
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

-- Plain CREATE SCHEMA: should a schema of this name exist already, somebody else made it, and installing into it
-- would hand him our objects.
CREATE SCHEMA recur;
COMMENT ON SCHEMA recur IS 'pg_recur: recurring actions, their dispatches, and the functions that run them';
