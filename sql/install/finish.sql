-- Rights, comments, and a wake-up for the launcher.

CREATE FUNCTION recur_internal.extension_created() RETURNS void
    LANGUAGE c
    AS 'MODULE_PATHNAME', 'extension_created_wrapper';
COMMENT ON FUNCTION recur_internal.extension_created IS 'Internal: wakes the launcher, or warns that there is none';

-- A column has its comment in its table; the views get a copy, for \d+.
DO $$
DECLARE
    seen      oid;
    described record;
BEGIN
    FOR seen IN
        SELECT c.oid FROM pg_class AS c
         WHERE c.relnamespace = ANY ('{recur,recur_internal}'::regnamespace[]) AND c.relkind = 'v'
         -- A view comes after those that it reads.
         ORDER BY c.oid
    LOOP
        FOR described IN
            WITH sources AS MATERIALIZED (
                SELECT d.refobjid AS relation
                  FROM pg_rewrite AS r
                  JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
                                     AND d.refclassid = 'pg_class'::regclass
                 WHERE r.ev_class = seen AND d.refobjid <> seen
                 GROUP BY d.refobjid
            ), columns AS MATERIALIZED (
                SELECT v.attname, t.attrelid, col_description(t.attrelid, t.attnum) AS comment,
                       count(*) OVER (PARTITION BY t.attrelid) AS shared
                  FROM sources AS s
                  JOIN pg_attribute AS t ON t.attrelid = s.relation AND t.attnum > 0
                  JOIN pg_attribute AS v ON v.attrelid = seen AND v.attnum > 0 AND v.attname = t.attname
            )
            -- The table that the view shows has more of its columns than one that is only looked up.
            SELECT DISTINCT ON (c.attname) c.attname, c.comment
              FROM columns AS c
              JOIN pg_attribute AS v ON v.attrelid = seen AND v.attname = c.attname
             WHERE c.comment IS NOT NULL AND col_description(v.attrelid, v.attnum) IS NULL
             ORDER BY c.attname, c.shared DESC, c.attrelid
        LOOP
            EXECUTE format('COMMENT ON COLUMN %s.%I IS %L', seen::regclass, described.attname, described.comment);
        END LOOP;
    END LOOP;
END
$$;

-- Default privileges of the installing superuser may have given rights to any role: all of them are revoked, not only
-- those of PUBLIC.
DO $$
DECLARE
    object record;
    holder text;
BEGIN
    FOR object IN
        SELECT 'SCHEMA ' || quote_ident(n.nspname) AS name, n.nspacl AS acl, n.nspowner AS owner
          FROM pg_namespace AS n WHERE n.nspname IN ('recur', 'recur_internal')
        UNION ALL
        SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE ' ELSE 'TABLE ' END || c.oid::regclass, c.relacl, c.relowner
          FROM pg_class AS c
         WHERE c.relnamespace = ANY ('{recur,recur_internal}'::regnamespace[]) AND c.relkind IN ('r', 'p', 'v', 'S')
        UNION ALL
        SELECT 'FUNCTION ' || p.oid::regprocedure, coalesce(p.proacl, acldefault('f', p.proowner)), p.proowner
          FROM pg_proc AS p WHERE p.pronamespace = ANY ('{recur,recur_internal}'::regnamespace[])
        UNION ALL
        SELECT 'DOMAIN ' || t.oid::regtype, coalesce(t.typacl, acldefault('T', t.typowner)), t.typowner
          FROM pg_type AS t WHERE t.typnamespace = 'recur'::regnamespace AND t.typtype = 'd'
    LOOP
        FOR holder IN
            SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
              FROM aclexplode(object.acl) AS a
             WHERE a.grantee <> object.owner
        LOOP
            EXECUTE format('REVOKE ALL ON %s FROM %s', object.name, holder);
        END LOOP;
    END LOOP;
END
$$;

-- The engine: the DML that functions and workers need, and nothing else.
GRANT USAGE ON SCHEMA recur, recur_internal TO recur_engine;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA recur_internal TO recur_engine;
GRANT TRUNCATE ON ALL TABLES IN SCHEMA recur_internal TO recur_engine;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA recur_internal TO recur_engine;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA recur_internal TO recur_engine;
REVOKE EXECUTE ON FUNCTION recur_internal.extension_created FROM recur_engine;
-- A new row of this table grants rights.
REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON recur_internal.levels FROM recur_engine;
GRANT UPDATE (name) ON recur_internal.levels TO recur_engine;
GRANT SELECT ON recur.recurring_actions, recur.dispatches TO recur_engine;
GRANT EXECUTE ON FUNCTION recur.clock TO recur_engine;
GRANT SELECT ON recur_internal.definitions, recur_internal.timers, recur_internal.progress TO recur_views;
ALTER VIEW recur.recurring_actions OWNER TO recur_views;
GRANT USAGE ON TYPE recur.schedule, recur.timezone TO recur_engine, PUBLIC;

-- The database's owner dumps and restores the tables, decides who gets a level, and asks the doctor.
DO $$
DECLARE
    dumped oid;
BEGIN
    GRANT USAGE ON SCHEMA recur, recur_internal TO pg_database_owner;
    FOR dumped IN SELECT unnest(e.extconfig) FROM pg_extension AS e WHERE e.extname = 'pg_recur' LOOP
        EXECUTE format(CASE (SELECT c.relkind FROM pg_class AS c WHERE c.oid = dumped)
                            WHEN 'S' THEN 'GRANT SELECT, UPDATE ON SEQUENCE %s TO pg_database_owner'
                            ELSE 'GRANT SELECT, INSERT ON %s TO pg_database_owner' END, dumped::regclass);
    END LOOP;
END
$$;
GRANT EXECUTE ON FUNCTION recur.grant_access, recur.revoke_access, recur.doctor, recur.set_setting,
    recur.reset_setting, recur.arm, recur.expect_move, recur_internal.settings_in_force, recur_internal.sees_all
    TO pg_database_owner;
GRANT SELECT ON recur.settings TO pg_database_owner;
-- A role that restores a dump checks the domains with these functions.
GRANT EXECUTE ON FUNCTION recur_internal.canonical_schedule, recur_internal.canonical_timezone TO PUBLIC;

SELECT recur_internal.extension_created();
