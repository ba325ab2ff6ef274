//! What lies in wait for CREATE EXTENSION, whose script runs as a superuser.

use pg_recur_tests::{Cluster, Session};

/// Operators and functions that fit better than those of the server, where they are found at all.
const TRAPS: &str = "
    CREATE FUNCTION caught() RETURNS text LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'hijacked as %', current_user; END $$;
    CREATE FUNCTION caught(text, regclass) RETURNS text LANGUAGE sql AS 'SELECT caught()';
    CREATE FUNCTION caught(text, regtype) RETURNS text LANGUAGE sql AS 'SELECT caught()';
    CREATE FUNCTION caught(text, regprocedure) RETURNS text LANGUAGE sql AS 'SELECT caught()';
    CREATE FUNCTION caught(text, name) RETURNS text LANGUAGE sql AS 'SELECT caught()';
    CREATE FUNCTION caught(name, text) RETURNS boolean LANGUAGE sql AS 'SELECT caught() IS NULL';
    CREATE OPERATOR || (LEFTARG = text, RIGHTARG = regclass, FUNCTION = caught);
    CREATE OPERATOR || (LEFTARG = text, RIGHTARG = regtype, FUNCTION = caught);
    CREATE OPERATOR || (LEFTARG = text, RIGHTARG = regprocedure, FUNCTION = caught);
    CREATE OPERATOR || (LEFTARG = text, RIGHTARG = name, FUNCTION = caught);
    CREATE OPERATOR = (LEFTARG = name, RIGHTARG = text, FUNCTION = caught);
    CREATE FUNCTION format(text, name) RETURNS text LANGUAGE sql AS 'SELECT caught()';
    CREATE FUNCTION format(text, int) RETURNS text LANGUAGE sql AS 'SELECT caught()';
    CREATE FUNCTION format(text, regclass) RETURNS text LANGUAGE sql AS 'SELECT caught()';
    CREATE FUNCTION quote_ident(name) RETURNS text LANGUAGE sql AS 'SELECT caught()'";

/// A database of dbo, who is no superuser and may be hostile.
fn database(cluster: &Cluster, name: &str) -> Session {
    let mut postgres = cluster.session("postgres");
    postgres.batch(
        "DO $$ BEGIN IF to_regrole('dbo') IS NULL THEN
             CREATE ROLE dbo LOGIN; CREATE ROLE stranger LOGIN; END IF; END $$",
    );
    cluster.empty_database(name, "OWNER dbo");
    cluster.session_as("dbo", name)
}

#[test]
fn the_install_script_calls_only_functions_of_the_server() {
    let cluster = Cluster::start();
    let mut dbo = database(&cluster, "app");
    for schema in ["public", "trap"] {
        dbo.batch(&format!(
            "CREATE SCHEMA IF NOT EXISTS {schema}; SET search_path = {schema}"
        ));
        dbo.batch(TRAPS);
        let (_, message, _) = dbo.error("SELECT 'a'::text || 'pg_class'::regclass");
        assert_eq!(message, "hijacked as dbo", "the trap works");
        // The schema is fixed: no caller chooses where names are looked up.
        let (code, message, _) = dbo.error(&format!("CREATE EXTENSION pg_recur SCHEMA {schema}"));
        assert_eq!(code, "0A000", "{message}");
    }
    dbo.batch(
        "SET search_path = trap, public, pg_temp, pg_catalog;
         CREATE TEMPORARY TABLE pg_proc (oid oid); CREATE TEMPORARY TABLE pg_roles (rolname name);
         CREATE TEMPORARY TABLE pg_class (oid oid); CREATE DOMAIN pg_temp.regclass AS text;
         CREATE DOMAIN pg_temp.uuid AS text; CREATE DOMAIN pg_temp.jsonb AS text;
         CREATE EXTENSION pg_recur",
    );
    let mut root = cluster.session("app");
    assert_eq!(
        root.texts(
            "SELECT DISTINCT a.atttypid::regtype::text FROM pg_attribute AS a
              WHERE a.attrelid = 'recur_internal.definitions'::regclass AND a.attname IN ('id', 'payload') ORDER BY 1",
            &[]
        ),
        ["jsonb", "uuid"]
    );
    root.batch(
        "SELECT recur.create('n', '@daily', 'p', 'a'); SELECT recur.tick(); TABLE recur.overview",
    );
}

#[test]
fn a_schema_of_another_role_is_not_adopted() {
    let cluster = Cluster::start();
    for (number, schema) in ["recur", "recur_internal"].into_iter().enumerate() {
        let name = format!("app{number}");
        let mut dbo = database(&cluster, &name);
        dbo.batch(&format!("GRANT CREATE ON DATABASE {name} TO stranger"));
        let mut stranger = cluster.session_as("stranger", &name);
        stranger.batch(&format!("CREATE SCHEMA {schema}"));
        for mut installer in [dbo, cluster.session(&name)] {
            let (code, message, _) = installer.error("CREATE EXTENSION pg_recur");
            assert_eq!(code, "42P06", "{message}");
            assert_eq!(
                installer.count("pg_extension WHERE extname = 'pg_recur'"),
                0
            );
        }
    }
}

/// A role of the engine's name that somebody else made would be somebody else's way to all rows.
#[test]
fn a_role_that_is_not_fit_to_be_the_engine_is_refused() {
    for (role, remedy) in [
        ("CREATE ROLE {} LOGIN", "ALTER ROLE {} NOLOGIN"),
        ("CREATE ROLE {} SUPERUSER", "ALTER ROLE {} NOSUPERUSER"),
        ("CREATE ROLE {} CREATEROLE", "ALTER ROLE {} NOCREATEROLE"),
        (
            "CREATE ROLE {}; GRANT {} TO stranger",
            "REVOKE {} FROM stranger",
        ),
        (
            "CREATE ROLE {}; GRANT stranger TO {}",
            "REVOKE stranger FROM {}",
        ),
    ] {
        let cluster = Cluster::preloaded("recur.enabled = off");
        let mut dbo = database(&cluster, "app");
        let mut root = cluster.session("app");
        for engine in ["recur_engine", "recur_views"] {
            root.batch(&role.replace("{}", engine));
            let (code, message, _) = dbo.error("CREATE EXTENSION pg_recur");
            assert_eq!(code, "55000", "{role}: {message}");
            assert!(message.contains(engine), "{role}: {message}");
            root.batch(&remedy.replace("{}", engine));
        }
        dbo.batch("CREATE EXTENSION pg_recur");
    }
}

/// Whatever a superuser grants by default, the extension's objects are granted to its own roles only.
#[test]
fn default_privileges_give_no_role_anything() {
    let cluster = Cluster::start();
    for (name, installer) in [("first", "postgres"), ("second", "dbo")] {
        drop(database(&cluster, name));
        let mut root = cluster.session(name);
        for kind in ["TABLES", "SEQUENCES", "FUNCTIONS", "TYPES", "SCHEMAS"] {
            root.batch(&format!(
                "ALTER DEFAULT PRIVILEGES GRANT ALL ON {kind} TO PUBLIC;
                 ALTER DEFAULT PRIVILEGES GRANT ALL ON {kind} TO stranger WITH GRANT OPTION"
            ));
        }
        cluster
            .session_as(installer, name)
            .batch("CREATE EXTENSION pg_recur");
        let strangers = root.texts(
            "WITH ours AS (SELECT oid FROM pg_namespace WHERE nspname IN ('recur', 'recur_internal')),
                  held (object, acl, owner) AS (
                      SELECT n.nspname::text, n.nspacl, n.nspowner FROM pg_namespace AS n WHERE n.oid IN (TABLE ours)
                      UNION ALL
                      SELECT c.oid::regclass::text, c.relacl, c.relowner FROM pg_class AS c
                       WHERE c.relnamespace IN (TABLE ours)
                      UNION ALL
                      SELECT p.oid::regprocedure::text, coalesce(p.proacl, acldefault('f', p.proowner)), p.proowner
                        FROM pg_proc AS p WHERE p.pronamespace IN (TABLE ours)
                      UNION ALL
                      SELECT t.oid::regtype::text, t.typacl, t.typowner FROM pg_type AS t
                       WHERE t.typnamespace IN (TABLE ours))
             SELECT DISTINCT format('%s to %s', h.object, CASE a.grantee WHEN 0 THEN 'PUBLIC'
                                                               ELSE pg_get_userbyid(a.grantee)::text END)
               FROM held AS h, aclexplode(h.acl) AS a
              WHERE a.grantee <> h.owner
                AND pg_get_userbyid(a.grantee) NOT IN ('recur_engine', 'recur_views', 'pg_database_owner')
              ORDER BY 1",
            &[],
        );
        // What the domains are checked with, and the domains: a restore needs them.
        assert_eq!(
            strangers,
            [
                "recur.schedule to PUBLIC",
                "recur.timezone to PUBLIC",
                "recur_internal.canonical_schedule(text) to PUBLIC",
                "recur_internal.canonical_timezone(text) to PUBLIC",
            ],
            "installed by {installer}"
        );
        let mut stranger = cluster.session_as("stranger", name);
        assert_eq!(stranger.error("TABLE recur.dispatches").0, "42501");
    }
}
