//! docs/sql-reference.md says what the catalog says. `UPDATE_DOCS=1 cargo test -p pg_recur-tests --test suite
//! reference` rewrites its generated part.

use pg_recur_tests::{Cluster, Session};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// How the line begins behind which everything is generated; it goes on with the command that does so.
const MARK: &str = "<!-- From here on generated from the catalog:";
const COMMAND: &str = "UPDATE_DOCS=1 cargo test -p pg_recur-tests --test suite reference";

const UNCOMMENTED: &str = "
    SELECT 'function ' || oid::regprocedure FROM pg_proc
     WHERE pronamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)
       AND obj_description(oid, 'pg_proc') IS NULL
    UNION ALL
    SELECT 'relation ' || oid::regclass FROM pg_class
     WHERE relnamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)
       AND relkind IN ('r', 'p', 'v', 'm', 'S') AND obj_description(oid, 'pg_class') IS NULL
    UNION ALL
    SELECT 'column ' || c.oid::regclass || '.' || a.attname
      FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
     WHERE c.relnamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)
       AND c.relkind IN ('r', 'p', 'v', 'm') AND NOT c.relispartition AND col_description(c.oid, a.attnum) IS NULL
    UNION ALL
    SELECT 'type ' || oid::regtype FROM pg_type
     WHERE typnamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)
       AND typtype IN ('d', 'e') AND obj_description(oid, 'pg_type') IS NULL
    UNION ALL
    SELECT 'setting ' || name FROM pg_settings WHERE name LIKE 'recur.%' AND coalesce(short_desc, '') = ''
    UNION ALL
    SELECT 'schema ' || nspname FROM pg_namespace
     WHERE nspname IN ('recur', 'recur_internal') AND obj_description(oid, 'pg_namespace') IS NULL
    UNION ALL
    SELECT 'role' WHERE shobj_description('recur_engine'::regrole, 'pg_authid') IS NULL
    UNION ALL
    SELECT 'extension'
     WHERE NOT EXISTS (SELECT FROM pg_extension
                        WHERE extname = 'pg_recur' AND obj_description(oid, 'pg_extension') <> '')";

/// C functions whose caller's search_path can't matter: they run no query, or one that names its table with the schema
/// and no operator, for every row of a view. Or they begin by setting `PlannerPins`: those of consumers and `enqueue`.
const WITHOUT_SEARCH_PATH: [&str; 36] = [
    "recur.claim",
    "recur.clock",
    "recur.complete",
    "recur.complete_many",
    "recur.describe",
    "recur.enqueue",
    "recur.extend",
    "recur.fail",
    "recur.fail_many",
    "recur.is_valid_schedule",
    "recur.lint",
    "recur.next_occurrence",
    "recur.preview",
    "recur.receive",
    "recur.release",
    "recur.tzdata_version",
    "recur_internal.cached_table_changed",
    "recur_internal.canonical_schedule",
    "recur_internal.canonical_timezone",
    "recur_internal.checked_count",
    "recur_internal.counts_from_start",
    "recur_internal.describe_within",
    "recur_internal.disarm_owners",
    "recur_internal.dispatch_id",
    "recur_internal.extension_created",
    "recur_internal.group_is_free",
    "recur_internal.is_preloaded",
    "recur_internal.library_version",
    "recur_internal.occurrences_around",
    "recur_internal.occurrences_by_minute",
    "recur_internal.owner_changed",
    "recur_internal.owner_name",
    "recur_internal.rows_restored",
    "recur_internal.runs_in_database",
    "recur_internal.sees_all",
    "recur_internal.visible_owners",
];

/// Every object says what it is: in psql, \d+ and \df+ are the manual.
#[test]
fn everything_has_a_comment() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let silent = session.texts(UNCOMMENTED, &[]);
    assert_eq!(silent, Vec::<String>::new(), "no comment on these");
    // An argument without a name can't be named by a caller.
    let nameless = session.texts(
        "SELECT oid::regprocedure::text FROM pg_proc
          WHERE pronamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace) AND pronargs > 0
            AND (proargnames IS NULL OR '' = ANY (proargnames))",
        &[],
    );
    assert_eq!(nameless, Vec::<String>::new());
    let loose = session.texts(
        "SELECT DISTINCT format('%s.%s', pronamespace::regnamespace, proname) FROM pg_proc
          WHERE pronamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)
            AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (proconfig), false) ORDER BY 1",
        &[],
    );
    assert_eq!(loose, WITHOUT_SEARCH_PATH);
    let in_sql = session.count(
        "pg_proc JOIN pg_language AS l ON l.oid = prolang
          WHERE pronamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)
            AND l.lanname <> 'c' AND proconfig IS NULL",
    );
    assert_eq!(in_sql, 0);
}

/// A view shows columns of one table, and looks into others.
#[test]
fn a_column_of_a_view_says_what_it_is_in_the_view() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for (view, column, comment) in [
        ("dispatches", "id", "Identifies the dispatch"),
        ("dispatches", "created_at", "When the dispatch was written"),
        ("dispatches", "namespace", "The namespace of the action"),
        ("journeys", "name", "The name of the journey"),
        ("journeys", "created_at", "When the journey was stored"),
        ("journeys", "updated_at", "When the states last changed"),
        ("recurring_actions", "id", "Identifies the action"),
        (
            "recurring_actions",
            "created_at",
            "When the action was created",
        ),
        ("dead_letters", "scheduled_at", "The occurrence"),
        ("dead_letters", "provider", "The kind of consumer"),
        ("events", "id", "Numbers the events"),
    ] {
        let shown: String = session.value(
            "SELECT col_description(attrelid, attnum) FROM pg_attribute
              WHERE attrelid = ('recur.' || $1)::regclass AND attname = $2",
            &[&view, &column],
        );
        assert!(shown.starts_with(comment), "{view}.{column}: {shown}");
    }
}

#[test]
fn the_reference_says_what_the_catalog_says() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    // As the documentation shows times and defaults.
    session.batch("SET timezone = 'UTC'; SET search_path = pg_catalog");
    let generated = format!(
        "{}{}{}",
        functions(&mut session),
        relations(&mut session),
        settings(&mut session)
    );

    let path = document();
    let text = fs::read_to_string(&path).expect("docs/sql-reference.md");
    let (written, present) = text.split_once(MARK).unwrap_or((&text, "\n"));
    let (_, present) = present.split_once('\n').expect("a line");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let written = written.trim_end();
        fs::write(
            &path,
            format!("{written}\n\n{MARK} {COMMAND} -->\n{generated}"),
        )
        .expect("docs/sql-reference.md");
        return;
    }
    for (present, expected) in present.lines().zip(generated.lines()) {
        assert_eq!(
            present, expected,
            "docs/sql-reference.md is not up to date: {COMMAND}"
        );
    }
    assert_eq!(
        present.lines().count(),
        generated.lines().count(),
        "{COMMAND}"
    );
    // What is worth having is worth an example: every function is called in the part that people wrote.
    let unused: Vec<String> = session
        .texts(
            "SELECT DISTINCT proname::text FROM pg_proc
              WHERE pronamespace = 'recur'::regnamespace
                AND proname NOT LIKE '\\_%'",
            &[],
        )
        .into_iter()
        .filter(|name| !written.contains(&format!("recur.{name}(")))
        .collect();
    assert_eq!(
        unused,
        Vec::<String>::new(),
        "no example of these in docs/sql-reference.md"
    );
}

/// The map leads somewhere: every file and folder that it names is there.
#[test]
fn the_map_names_what_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let map = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let mut checked = 0;
    for name in map.split('`').skip(1).step_by(2) {
        let names_a_file = [".sql", ".rs", ".md", ".sh"]
            .iter()
            .any(|ending| name.ends_with(ending));
        let plain = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
        if !plain || !(names_a_file && name.contains('/') || name.ends_with('/')) {
            continue;
        }
        let found = ["", "src", "sql", "tests"]
            .iter()
            .any(|folder| root.join(folder).join(name).exists());
        assert!(found, "ARCHITECTURE.md names {name}, which is not there");
        checked += 1;
    }
    assert!(checked > 5);
}

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sql-reference.md")
}

fn functions(session: &mut Session) -> String {
    let mut text = "## Functions\n".to_owned();
    let rows = session.rows(
        "WITH arguments AS (
             SELECT p.oid AS function, a.n, a.mode, concat(quote_ident(a.name), ' ', format_type(a.t, NULL)) AS declared
               FROM pg_proc AS p, unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]), p.proargnames, p.proargmodes)
                                  WITH ORDINALITY AS a (t, name, mode, n))
         SELECT p.proname::text,
                -- The server says no more than \"record\" of what OUT arguments return.
                coalesce((SELECT format('%s(%s)', CASE WHEN p.proretset THEN 'SETOF ' END,
                                        string_agg(a.declared, ', ' ORDER BY a.n))
                            FROM arguments AS a WHERE a.function = p.oid AND a.mode IN ('o', 'b') HAVING count(*) > 0),
                         pg_get_function_result(p.oid)),
                obj_description(p.oid, 'pg_proc'),
                ARRAY(SELECT a.declared || coalesce(' DEFAULT ' || pg_get_function_arg_default(p.oid, a.n::int), '')
                        FROM arguments AS a
                       WHERE a.function = p.oid AND coalesce(a.mode, 'i') IN ('i', 'b', 'v') ORDER BY a.n),
                ARRAY(SELECT l FROM unnest('{reader,author,consumer,sql,monitor,ticker,deliverer,admin}'::text[]) AS l
                       WHERE p.proname = ANY (recur_internal.functions_of(l))),
                has_function_privilege('pg_database_owner', p.oid, 'EXECUTE')
           FROM pg_proc AS p
          WHERE p.pronamespace = 'recur'::regnamespace AND p.proname NOT LIKE '\\_%'
          ORDER BY p.proname, p.oid::regprocedure::text",
        &[],
    );
    for row in rows {
        let (name, result, comment): (String, String, String) =
            (row.get(0), row.get(1), row.get(2));
        let (arguments, levels): (Vec<String>, Vec<String>) = (row.get(3), row.get(4));
        let arguments: Vec<String> = arguments
            .iter()
            .map(|argument| {
                argument
                    .replace("timestamp with time zone", "timestamptz")
                    .replace(" without time zone", "")
            })
            .collect();
        let result = result
            .replace("timestamp with time zone", "timestamptz")
            .replace(" without time zone", "");
        let granted = match row.get(5) {
            true => format!("{}, the owner of the database", levels.join(", ")),
            false => levels.join(", "),
        };
        let single = format!("recur.{name}({}) → {result}", arguments.join(", "));
        let shown = if single.chars().count() <= 110 {
            single
        } else {
            format!(
                "recur.{name}(\n    {}\n) → {result}",
                arguments.join(",\n    ")
            )
        };
        write!(
            text,
            "\n### {name}\n\n```text\n{shown}\n```\n\n{comment}.\nFor: {granted}.\n"
        )
        .unwrap();
    }
    text
}

fn relations(session: &mut Session) -> String {
    let mut text = "\n## Views\n\n\
                    The tables behind the views are in schema `recur_internal`, which only the extension writes.\n"
        .to_owned();
    let rows = session.rows(
        "SELECT c.oid, c.relname::text, CASE c.relkind WHEN 'v' THEN 'view' ELSE 'table' END,
                obj_description(c.oid, 'pg_class')
           FROM pg_class AS c
          WHERE c.relnamespace = 'recur'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
          ORDER BY c.relkind <> 'v', c.relname",
        &[],
    );
    for row in rows {
        let (oid, name, kind, comment): (u32, String, String, String) =
            (row.get(0), row.get(1), row.get(2), row.get(3));
        write!(
            text,
            "\n### {kind} {name}\n\n{comment}.\n\n\
             | column | type | meaning |\n| --- | --- | --- |\n"
        )
        .unwrap();
        let columns = session.rows(
            "SELECT attname::text, format_type(atttypid, atttypmod), coalesce(col_description(attrelid, attnum), '')
               FROM pg_attribute
              WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            &[&oid],
        );
        for column in columns {
            let (name, kind, meaning): (String, String, String) =
                (column.get(0), column.get(1), column.get(2));
            let kind = kind.replace("timestamp with time zone", "timestamptz");
            writeln!(
                text,
                "| `{name}` | {kind} | {} |",
                meaning.replace('|', "\\|")
            )
            .unwrap();
        }
    }
    text
}

fn settings(session: &mut Session) -> String {
    let mut text = "\n## Settings\n\n\
                    | setting | default | who sets it | meaning |\n| --- | --- | --- | --- |\n"
        .to_owned();
    let rows = session.rows(
        "SELECT name, concat_ws(' ', boot_val, unit),
                CASE context WHEN 'user' THEN 'anybody, for a session' WHEN 'superuser' THEN 'a superuser'
                             WHEN 'sighup' THEN 'the configuration, on reload'
                             ELSE 'the configuration, on restart' END,
                concat_ws(' ', short_desc, nullif(extra_desc, ''))
           FROM pg_settings WHERE name LIKE 'recur.%' ORDER BY name",
        &[],
    );
    for row in rows {
        let (name, value, who, meaning): (String, String, String, String) =
            (row.get(0), row.get(1), row.get(2), row.get(3));
        writeln!(text, "| `{name}` | `{value}` | {who} | {meaning} |").unwrap();
    }
    text
}
