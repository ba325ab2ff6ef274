-- Whose it is, and word to the workers.

CREATE FUNCTION recur._extension_created() RETURNS void
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'extension_created_wrapper';
COMMENT ON FUNCTION recur._extension_created IS 'Internal: tells the launcher, or warns that there is none';
REVOKE ALL ON FUNCTION recur._extension_created FROM PUBLIC;

-- This script runs as a superuser, for whoever owns the database. What it has made becomes his: functions that run as
-- their owner, and the workers, which act as the owner of the tables, then have no more rights than he has.
DO $$
DECLARE
    object text;
BEGIN
    FOR object IN
        SELECT format('TABLE %s', c.oid::regclass) FROM pg_class AS c
         WHERE c.relnamespace = 'recur'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S')
        UNION ALL
        SELECT format('ROUTINE %s', p.oid::regprocedure) FROM pg_proc AS p WHERE p.pronamespace = 'recur'::regnamespace
        UNION ALL
        SELECT format('DOMAIN %s', t.oid::regtype) FROM pg_type AS t
         WHERE t.typnamespace = 'recur'::regnamespace AND t.typtype = 'd'
        UNION ALL
        SELECT 'SCHEMA recur'
    LOOP
        EXECUTE format('ALTER %s OWNER TO @extowner@', object);
    END LOOP;
END
$$;

SELECT recur._extension_created();
