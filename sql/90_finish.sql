-- Whose it is, and word to the workers.

CREATE FUNCTION recur._extension_created() RETURNS void
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'extension_created_wrapper';
COMMENT ON FUNCTION recur._extension_created IS 'Internal: tells the launcher, or warns that there is none';
REVOKE ALL ON FUNCTION recur._extension_created FROM PUBLIC;

-- What a column means is said where it is stored; \d+ of a view shall teach it as well.
DO $$
DECLARE
    seen      oid;
    described record;
BEGIN
    FOR seen IN SELECT c.oid FROM pg_class AS c WHERE c.relnamespace = 'recur'::regnamespace AND c.relkind = 'v' ORDER BY 1 LOOP
        FOR described IN
            SELECT DISTINCT ON (v.attname) v.attname, col_description(t.attrelid, t.attnum) AS comment
              FROM pg_rewrite AS r
              JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass
              JOIN pg_attribute AS t ON t.attrelid = d.refobjid AND t.attrelid <> seen
              JOIN pg_attribute AS v ON v.attrelid = seen AND v.attnum > 0 AND v.attname = t.attname
             WHERE r.ev_class = seen AND col_description(v.attrelid, v.attnum) IS NULL
               AND col_description(t.attrelid, t.attnum) IS NOT NULL
             ORDER BY v.attname, t.attrelid
        LOOP
            EXECUTE format('COMMENT ON COLUMN %s.%I IS %L', seen::regclass, described.attname, described.comment);
        END LOOP;
    END LOOP;
END
$$;

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
