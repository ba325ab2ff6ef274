//! The owner of the database changes an object that workers, or other roles, rely on.

use super::field::{Field, assert_denied};
use pg_recur_tests::Session;

/// Everything that the extension consists of, in the words of the catalog.
const OBJECTS: &str = "
    WITH ours AS (SELECT oid FROM pg_namespace WHERE nspname IN ('recur', 'recur_internal'))
    SELECT coalesce(string_agg(o, E'\\n' ORDER BY o), '') FROM (
        SELECT to_jsonb(n)::text FROM pg_namespace AS n WHERE n.oid IN (TABLE ours)
        UNION ALL
        SELECT (to_jsonb(c) - '{relpages,reltuples,relallvisible,relallfrozen,relfrozenxid,relminmxid,
                                relfilenode}'::text[])::text
          FROM pg_class AS c WHERE c.relnamespace IN (TABLE ours)
        UNION ALL
        SELECT to_jsonb(a)::text FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
         WHERE c.relnamespace IN (TABLE ours)
        UNION ALL
        SELECT to_jsonb(i)::text FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
         WHERE c.relnamespace IN (TABLE ours)
        UNION ALL
        SELECT to_jsonb(p)::text FROM pg_proc AS p WHERE p.pronamespace IN (TABLE ours)
        UNION ALL
        SELECT to_jsonb(t)::text FROM pg_type AS t WHERE t.typnamespace IN (TABLE ours)
        UNION ALL
        SELECT to_jsonb(t)::text FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
         WHERE c.relnamespace IN (TABLE ours)
        UNION ALL
        SELECT to_jsonb(r)::text FROM pg_rewrite AS r JOIN pg_class AS c ON c.oid = r.ev_class
         WHERE c.relnamespace IN (TABLE ours)
        UNION ALL
        SELECT to_jsonb(c)::text FROM pg_constraint AS c WHERE c.connamespace IN (TABLE ours)
        UNION ALL
        SELECT to_jsonb(d)::text FROM pg_depend AS d
         WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
        UNION ALL
        SELECT to_jsonb(e)::text FROM pg_extension AS e
        UNION ALL
        SELECT to_jsonb(m)::text FROM pg_auth_members AS m) AS all_of_them (o)";

fn objects(root: &mut Session) -> String {
    root.value(OBJECTS, &[])
}

/// Relations of both schemas, indexes too: (kind, name).
fn relations(root: &mut Session) -> Vec<(String, String)> {
    let rows = root.rows(
        "SELECT CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE' WHEN 'i' THEN 'INDEX' WHEN 'I' THEN 'INDEX'
                             ELSE 'TABLE' END, oid::regclass::text
           FROM pg_class
          WHERE relnamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)
            AND relkind IN ('r', 'p', 'v', 'S', 'i', 'I')",
        &[],
    );
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Functions of both schemas: (signature, definition).
fn functions(root: &mut Session) -> Vec<(String, String)> {
    let rows = root.rows(
        "SELECT oid::regprocedure::text, pg_get_functiondef(oid) FROM pg_proc
          WHERE pronamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)",
        &[],
    );
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// What would change a relation of this kind, or what is done with it.
fn changes(kind: &str, name: &str) -> Vec<String> {
    let mut all = vec![
        format!("ALTER {kind} {name} RENAME TO moved"),
        format!("DROP {kind} {name} CASCADE"),
        format!("COMMENT ON {kind} {name} IS 'mine'"),
        format!("ALTER EXTENSION pg_recur DROP {kind} {name}"),
    ];
    if kind != "INDEX" {
        all.push(format!("ALTER {kind} {name} SET SCHEMA public"));
        all.push(format!("ALTER {kind} {name} OWNER TO dbo"));
    }
    match kind {
        "TABLE" => all.extend([
            format!("ALTER TABLE {name} ADD COLUMN mine int DEFAULT random()"),
            format!("ALTER TABLE {name} ENABLE ROW LEVEL SECURITY"),
            format!("CREATE POLICY mine ON {name}"),
            format!("ALTER TABLE {name} DISABLE TRIGGER ALL"),
            format!("ALTER TABLE {name} SET (autovacuum_enabled = off)"),
            format!("CREATE INDEX ON {name} (own.identity(1))"),
            format!("CREATE STATISTICS own.mine ON ctid, xmin FROM {name}"),
            format!("CREATE TABLE own.child () INHERITS ({name})"),
            format!("CREATE TABLE own.child PARTITION OF {name} DEFAULT"),
            format!("CREATE PUBLICATION mine FOR TABLE {name}"),
            format!("TRUNCATE {name}"),
            format!("DELETE FROM {name}"),
            format!("CREATE RULE mine AS ON INSERT TO {name} DO INSTEAD NOTHING"),
            format!("CREATE TRIGGER mine AFTER INSERT ON {name} EXECUTE FUNCTION own.trigger()"),
            format!("LOCK TABLE {name} IN EXCLUSIVE MODE"),
            format!("SELECT FROM {name} FOR UPDATE"),
        ]),
        "VIEW" => all.extend([
            format!("CREATE OR REPLACE VIEW {name} AS SELECT 1 AS mine"),
            format!("ALTER VIEW {name} SET (security_barrier = off)"),
            format!("CREATE RULE mine AS ON INSERT TO {name} DO INSTEAD NOTHING"),
            format!("CREATE TRIGGER mine INSTEAD OF INSERT ON {name} FOR EACH ROW EXECUTE FUNCTION own.trigger()"),
        ]),
        "SEQUENCE" => all.push(format!("ALTER SEQUENCE {name} INCREMENT 1000000 MAXVALUE 1000001 CYCLE")),
        _ => all.push(format!("ALTER INDEX {name} SET (fillfactor = 10)")),
    }
    all
}

/// The owner of the database is the owner of the extension, and of none of its objects.
#[test]
fn the_owner_of_the_database_can_change_no_object() {
    let mut field = Field::new();
    let mut dbo = field.session("dbo");
    dbo.batch(
        "CREATE SCHEMA own;
         CREATE FUNCTION own.trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
         CREATE FUNCTION own.identity(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1'",
    );
    let before = objects(&mut field.root);
    let mut tried = 0;
    for (kind, name) in relations(&mut field.root) {
        for statement in changes(&kind, &name) {
            // An error that is not about rights comes from a statement that no role could run.
            let (code, message, _) = dbo.error(&statement);
            let expected = ["42501", "42809", "0A000", "42P17", "42P07", "55000"];
            assert!(
                expected.contains(&code.as_str()),
                "{statement}: {code} {message}"
            );
            tried += usize::from(code == "42501");
        }
    }
    assert!(tried > 500, "{tried}");
    for (signature, definition) in functions(&mut field.root) {
        assert_denied(&mut dbo, &definition);
        for statement in [
            format!("DROP FUNCTION {signature} CASCADE"),
            format!("ALTER FUNCTION {signature} RENAME TO moved"),
            format!("ALTER FUNCTION {signature} SET SCHEMA public"),
            format!("ALTER FUNCTION {signature} OWNER TO dbo"),
            format!("ALTER FUNCTION {signature} SECURITY DEFINER"),
            format!("ALTER FUNCTION {signature} SET search_path = own"),
            format!("ALTER FUNCTION {signature} RESET ALL"),
            format!("ALTER EXTENSION pg_recur DROP FUNCTION {signature}"),
        ] {
            assert_denied(&mut dbo, &statement);
        }
    }
    assert_eq!(objects(&mut field.root), before);
    field.assert_victim_works();
}

/// What is not about one object.
const OTHER_WAYS: [&str; 33] = [
    "ALTER SCHEMA recur RENAME TO moved",
    "ALTER SCHEMA recur_internal RENAME TO moved",
    "ALTER SCHEMA recur_internal OWNER TO dbo",
    "DROP SCHEMA recur_internal CASCADE",
    "CREATE TABLE recur.mine ()",
    "CREATE TABLE recur_internal.mine ()",
    "CREATE FUNCTION recur_internal.create(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE OPERATOR recur_internal.= (LEFTARG = int, RIGHTARG = int, FUNCTION = own.equal)",
    "CREATE OPERATOR pg_catalog.=== (LEFTARG = int, RIGHTARG = int, FUNCTION = own.equal)",
    "CREATE FUNCTION pg_catalog.hijack() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE CAST (text AS uuid) WITH INOUT AS IMPLICIT",
    "CREATE CAST (bigint AS jsonb) WITHOUT FUNCTION",
    "CREATE OPERATOR CLASS own.mine DEFAULT FOR TYPE timestamptz USING btree AS OPERATOR 1 <",
    "CREATE EVENT TRIGGER mine ON ddl_command_end EXECUTE FUNCTION own.event()",
    "CREATE FUNCTION own.claim(text) RETURNS text LANGUAGE c AS '$libdir/pg_recur', 'claim_wrapper'",
    "CREATE FUNCTION own.owner_name(text) RETURNS text LANGUAGE internal AS 'textin'",
    "CREATE TRIGGER mine BEFORE INSERT ON own.owners FOR EACH ROW EXECUTE FUNCTION recur_internal.owner_changed()",
    "CREATE TRIGGER mine INSTEAD OF INSERT ON own.actions FOR EACH ROW
        EXECUTE FUNCTION recur_internal.insert_action()",
    "ALTER TYPE recur.schedule RENAME TO moved",
    "ALTER DOMAIN recur.schedule DROP CONSTRAINT schedule_is_valid",
    "ALTER DOMAIN recur.timezone OWNER TO dbo",
    "CREATE TABLE own.child (id uuid REFERENCES recur_internal.definitions)",
    "SET ROLE recur_engine",
    "SET ROLE recur_views",
    "GRANT recur_engine TO dbo",
    "GRANT recur_views TO dbo",
    "ALTER ROLE recur_engine LOGIN",
    "DROP ROLE recur_views",
    "SET SESSION AUTHORIZATION recur_engine",
    "REASSIGN OWNED BY postgres TO dbo",
    "DROP OWNED BY recur_engine",
    "ALTER DEFAULT PRIVILEGES FOR ROLE postgres GRANT ALL ON TABLES TO dbo",
    "ALTER FOREIGN DATA WRAPPER recur OWNER TO dbo",
];

#[test]
fn the_owner_of_the_database_finds_no_other_way_in() {
    let mut field = Field::new();
    let mut dbo = field.session("dbo");
    dbo.batch(
        "CREATE SCHEMA own; CREATE TABLE own.owners (name int, role text); CREATE VIEW own.actions AS SELECT 1 AS id;
         CREATE FUNCTION own.equal(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT true';
         CREATE FUNCTION own.event() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
         CREATE FUNCTION own.helper() RETURNS int LANGUAGE sql AS 'SELECT 1';
         CREATE TABLE own.extra ()",
    );
    let before = objects(&mut field.root);
    for statement in OTHER_WAYS {
        let (code, message, _) = dbo.error(statement);
        let refused = ["42501", "42704", "55000"].contains(&code.as_str());
        assert!(refused, "{statement}: {code} {message}");
    }
    // The extension is not relocatable, whatever its owner wants.
    let (code, message, _) = dbo.error("ALTER EXTENSION pg_recur SET SCHEMA own");
    assert!(
        ["0A000", "42501"].contains(&code.as_str()),
        "{code} {message}"
    );
    // Rights that a role has but may not pass on are not passed on: some of these statements only warn.
    for (_, name) in relations(&mut field.root)
        .into_iter()
        .filter(|(kind, _)| kind != "INDEX")
    {
        let _ = dbo
            .0
            .batch_execute(&format!("GRANT ALL ON {name} TO stranger"));
    }
    dbo.batch("GRANT ALL ON SCHEMA recur, recur_internal TO stranger");
    assert_eq!(objects(&mut field.root), before);
    // Objects of its own become members, which gives them no part in anything.
    dbo.batch(
        "ALTER EXTENSION pg_recur ADD FUNCTION own.helper(); ALTER EXTENSION pg_recur ADD TABLE own.extra;
         ALTER EXTENSION pg_recur ADD SCHEMA own",
    );
    field.assert_victim_works();
    dbo.batch(
        "ALTER EXTENSION pg_recur DROP FUNCTION own.helper(); ALTER EXTENSION pg_recur DROP TABLE own.extra;
         ALTER EXTENSION pg_recur DROP SCHEMA own",
    );
    assert_eq!(objects(&mut field.root), before);
    field.assert_victim_works();
}

/// Levels are for people. Without its rights, or the views' owner without its own, the engine would stop.
#[test]
fn no_caller_takes_the_rights_of_the_roles_that_the_extension_works_as() {
    let mut field = Field::new();
    field
        .root
        .batch("CREATE ROLE boss LOGIN; SELECT recur.grant_access('boss', 'admin')");
    let before = objects(&mut field.root);
    for caller in ["dbo", "boss"] {
        let mut session = field.session(caller);
        for role in ["recur_engine", "recur_views", "pg_database_owner"] {
            for call in [
                format!("SELECT recur.revoke_access('{role}')"),
                format!("SELECT recur.grant_access('{role}', 'admin')"),
                format!(
                    "INSERT INTO recur_internal.levels (role, name, level) VALUES (0, '{role}', 'admin')"
                ),
            ] {
                let (code, message, _) = session.error(&call);
                // Only the owner of the database may write to the table.
                let refused = code == "22023" || (caller == "boss" && code == "42501");
                assert!(refused, "{caller}: {call}: {code} {message}");
            }
        }
    }
    assert_eq!(objects(&mut field.root), before);
    field.assert_victim_works();
}

/// The owner of a database may rebuild indexes and rewrite tables of others in it.
#[test]
fn rebuilt_indexes_and_tables_are_found_again() {
    let field = Field::new();
    let mut dbo = field.session("dbo");
    for statement in [
        "REINDEX DATABASE CONCURRENTLY app",
        "REINDEX DATABASE app",
        "VACUUM FULL",
        "ANALYZE",
    ] {
        dbo.batch(statement);
        field.assert_victim_works();
    }
}
