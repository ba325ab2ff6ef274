//! A database is dumped and restored, copied and upgraded: everything is there again, and fires.

use pg_recur_tests::{Cluster, Session, eventually};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Dispatches nothing until it is told to: what is compared stands still.
const STILL: &str = "recur.enabled = off";

fn run(mut command: Command) -> String {
    let output = command.output().expect("the program runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {errors}");
    assert_eq!(errors, "", "{command:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Roles as both clusters have them, and a database of `owner`, empty.
fn prepare(cluster: &Cluster, owner: &str) {
    let mut admin = cluster.session("postgres");
    admin.batch("CREATE ROLE dba LOGIN; CREATE ROLE alice LOGIN; CREATE ROLE worker LOGIN");
    admin.batch(&format!("CREATE DATABASE app OWNER {owner}"));
}

/// Actions in every state, with dispatches, events and contexts.
fn fill(cluster: &Cluster, owner: &str) {
    let mut session = cluster.session_as(owner, "app");
    session.batch("CREATE EXTENSION pg_recur");
    session.batch("SELECT recur.grant_access('alice', 'author'); SELECT recur.grant_access('worker', 'consumer')");
    let mut alice = cluster.session_as("alice", "app");
    alice.batch(
        "SELECT recur.create('every second', '* * * * * *', 'p', 'a', '{\"k\": \"ü\\n\"}', labels => '{\"team\": \"red\"}');
         SELECT recur.create('yearly', '@yearly', 'p', 'a', timezone => 'Europe/Berlin', context => '{\"n\": 1}', subject => 's');
         SELECT recur.update(recur.id_of('yearly', subject => 's'), '{\"context\": {\"n\": 2}}');
         SELECT recur.pause(id, 'holidays') FROM recur.create('paused', '3h', 'p', 'a', starts_at => '2020-01-01Z');
         SELECT recur.create('twin', '90m', 'p', 'a'); SELECT recur.create('twin', '90m', 'p', 'a', on_existing => 'add_another');
         SELECT recur.delete(id) FROM recur.create('gone', '@daily', 'p', 'a');
         SELECT recur.create('later', '0 0 29 2 *', 'p', 'a', retry_backoff => '{\"base\": \"1 s\", \"factor\": 1.5, \"cap\": \"1 min\"}')",
    );
    // What a year does to it: an end in the past must not hinder the restore.
    session.batch(
        "UPDATE recur.definitions SET starts_at = '2020-01-01Z', ends_at = '2020-06-01Z' WHERE name = 'paused';
         UPDATE recur.timers SET ended_reason = 'expired', run_count = 7, last_run_at = '2020-05-31Z', last_error = 'e', error_count = 1
           WHERE action_id = recur.id_of('paused');
         SELECT recur._turn_history('7 days', now() - interval '3 days'); SELECT recur._turn_history('7 days', now())",
    );
    for (table, status) in [
        ("live_dispatches", "pending"),
        ("live_dispatches", "running"),
        ("finished_dispatches", "completed"),
        ("finished_dispatches", "cancelled"),
    ] {
        session.batch(&format!(
            "INSERT INTO recur.{table} (id, action_id, scheduled_at, trigger, namespace, tenant, owner, provider, action_type,
                    payload, raw_payload, metadata, priority, status, attempt, releases, max_attempts, available_at,
                    cancel_requested, created_at, errors)
             SELECT gen_random_uuid(), id, now(), 'schedule', namespace, tenant, owner, provider, action_type, payload, '\\x00ff',
                    '{{}}', 0, '{status}', 1, 0, 3, now(), false, now(), '[1]' FROM recur.recurring_actions"
        ));
    }
}

/// Every row of every table of the extension, and what comes next.
fn contents(session: &mut Session) -> Vec<String> {
    session.batch("SET timezone = 'UTC'");
    let tables: Vec<String> = session
        .rows(
            "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'recur'::regnamespace AND relkind IN ('r', 'v', 'S')
                AND relname <> 'overview' ORDER BY 1",
            &[],
        )
        .iter()
        .map(|row| row.get(0))
        .collect();
    tables
        .iter()
        .flat_map(|table| {
            let columns = if table == "recur.event_ids" { "last_value" } else { "t.*" };
            session
                .rows(&format!("SELECT '{table}: ' || r::text FROM (SELECT {columns} FROM {table} AS t) AS r ORDER BY 1"), &[])
                .iter()
                .map(|row| row.get(0))
                .collect::<Vec<String>>()
        })
        .collect()
}

fn fires(cluster: &Cluster) {
    cluster.configure("recur.enabled = on");
    cluster.reload();
    let mut session = cluster.session("app");
    let before: i64 = session.value("SELECT count(*) FROM recur.dispatches", &[]);
    eventually("it fires there", || {
        session.value::<i64>("SELECT count(*) FROM recur.dispatches", &[]) > before
    });
}

#[test]
fn a_dump_brings_everything_back() {
    for owner in ["postgres", "dba"] {
        let (source, target) = (Cluster::preloaded(STILL), Cluster::preloaded(STILL));
        prepare(&source, owner);
        fill(&source, owner);
        prepare(&target, owner);
        let file = source.folder().join("dump");
        let mut dump = source.program("pg_dump", owner);
        dump.args(["--format=custom", "--dbname=app", "--file"])
            .arg(&file);
        run(dump);
        // Where the other cluster's programs find it.
        let mut restore = target.program("pg_restore", owner);
        restore.args(["--exit-on-error", "--dbname=app"]).arg(&file);
        run(restore);

        let (before, after) = (
            contents(&mut source.session("app")),
            contents(&mut target.session("app")),
        );
        for table in [
            "definitions",
            "timers",
            "progress",
            "contexts",
            "live_dispatches",
            "finished_dispatches_",
            "events_",
            "history_turns",
            "event_ids",
        ] {
            assert!(
                before
                    .iter()
                    .any(|row| row.starts_with(&format!("recur.{table}"))),
                "nothing in {table}"
            );
        }
        assert_eq!(before, after, "{owner}");
        // The rights that were handed out, too.
        let mut alice = target.session_as("alice", "app");
        assert_eq!(
            alice.value::<i64>("SELECT count(*) FROM recur.recurring_actions", &[]),
            6
        );
        alice.batch("SELECT recur.update(recur.id_of('twin'), '{\"priority\": 1}')");
        assert_eq!(
            target
                .session_as("worker", "app")
                .error("SELECT recur.pause_all()")
                .0,
            "42501"
        );
        let owners: Vec<String> = target.session("app").value(
            "SELECT array_agg(DISTINCT o) FROM (SELECT pg_get_userbyid(relowner)::text FROM pg_class WHERE relnamespace = 'recur'::regnamespace
              UNION ALL SELECT pg_get_userbyid(proowner)::text FROM pg_proc WHERE pronamespace = 'recur'::regnamespace) AS x (o)",
            &[],
        );
        assert_eq!(
            owners,
            [owner],
            "everything belongs to whoever created the extension"
        );
        fires(&target);
    }
}

#[test]
fn a_dump_of_the_schema_alone_has_no_rows_and_works() {
    let (source, target) = (Cluster::preloaded(STILL), Cluster::preloaded(STILL));
    prepare(&source, "postgres");
    fill(&source, "postgres");
    prepare(&target, "postgres");
    let mut dump = source.program("pg_dump", "postgres");
    dump.args(["--schema-only", "--dbname=app"]);
    let script = run(dump);
    assert!(script.contains("CREATE EXTENSION IF NOT EXISTS pg_recur"));
    assert!(
        !script.contains("CREATE TABLE recur."),
        "what belongs to the extension is not dumped as if it were the user's"
    );
    let output = target.psql("app", &script);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut session = target.session("app");
    assert_eq!(
        session.value::<i64>("SELECT count(*) FROM recur.recurring_actions", &[]),
        0
    );
    session.batch("SELECT recur.create('every second', '* * * * * *', 'p', 'a')");
    fires(&target);
}

#[test]
fn a_copy_of_a_database_has_everything() {
    let cluster = Cluster::preloaded(STILL);
    prepare(&cluster, "postgres");
    fill(&cluster, "postgres");
    let before = contents(&mut cluster.session("app"));
    cluster
        .session("postgres")
        .batch("ALTER DATABASE app RENAME TO original");
    cluster
        .session("postgres")
        .batch("CREATE DATABASE app TEMPLATE original");
    assert_eq!(contents(&mut cluster.session("app")), before);
    fires(&cluster);
}

/// Scripts that are installed for a test, and removed after it.
struct Scripts(Vec<PathBuf>);

impl Scripts {
    fn folder() -> PathBuf {
        let config = PathBuf::from(std::env::var_os("PG_RECUR_BIN").unwrap()).join("pg_config");
        let share = Command::new(config)
            .arg("--sharedir")
            .output()
            .expect("pg_config")
            .stdout;
        Path::new(String::from_utf8(share).unwrap().trim()).join("extension")
    }

    fn install(&mut self, name: &str, script: &str) {
        let path = Scripts::folder().join(name);
        fs::write(&path, script).expect("the extension folder of the private PostgreSQL is ours");
        self.0.push(path);
    }
}

impl Drop for Scripts {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

/// What a database knows of the extension's objects: definitions, comments, rights and owners.
fn catalog(session: &mut Session) -> Vec<String> {
    session
        .rows(
            "SELECT concat_ws(' | ', 'function', p.oid::regprocedure, pg_get_functiondef(p.oid), obj_description(p.oid, 'pg_proc'),
                              p.proacl::text, pg_get_userbyid(p.proowner))
               FROM pg_proc AS p WHERE p.pronamespace = 'recur'::regnamespace
             UNION ALL
             SELECT concat_ws(' | ', 'relation', c.relname, c.relkind, obj_description(c.oid, 'pg_class'), c.relacl::text,
                              pg_get_userbyid(c.relowner), c.relrowsecurity)
               FROM pg_class AS c WHERE c.relnamespace = 'recur'::regnamespace
             UNION ALL
             SELECT concat_ws(' | ', 'column', a.attrelid::regclass, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
                              pg_get_expr(d.adbin, d.adrelid), col_description(a.attrelid, a.attnum))
               FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
               LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
              WHERE c.relnamespace = 'recur'::regnamespace
             UNION ALL
             SELECT concat_ws(' | ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid))
               FROM pg_constraint WHERE connamespace = 'recur'::regnamespace
             UNION ALL
             SELECT concat_ws(' | ', 'index', indexrelid::regclass, pg_get_indexdef(indexrelid))
               FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = 'recur'::regnamespace
             UNION ALL
             SELECT concat_ws(' | ', 'trigger', tgrelid::regclass, pg_get_triggerdef(pg_trigger.oid))
               FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid WHERE relnamespace = 'recur'::regnamespace AND NOT tgisinternal
             UNION ALL
             SELECT concat_ws(' | ', 'policy', polrelid::regclass, polname, pg_get_expr(polqual, polrelid))
               FROM pg_policy JOIN pg_class ON pg_class.oid = polrelid WHERE relnamespace = 'recur'::regnamespace
             ORDER BY 1",
            &[],
        )
        .iter()
        .map(|row| row.get(0))
        .collect()
}

/// The frozen scripts of earlier versions, each with its way to this one.
fn released() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql/upgrades");
    let mut versions: Vec<String> = fs::read_dir(folder)
        .expect("sql/upgrades")
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let version = name.strip_prefix("pg_recur--")?.strip_suffix(".sql")?;
            (!version.contains("--")).then(|| version.to_owned())
        })
        .collect();
    versions.sort();
    versions
}

/// From an older version to this one, by the database's owner, while actions exist. The older version is this one
/// without a function, a column and their like; should a release be frozen in sql/upgrades, it is tried as well.
#[test]
fn an_older_version_is_upgraded_in_place() {
    let cluster = Cluster::preloaded(STILL);
    prepare(&cluster, "dba");
    let mut fresh = cluster.session_as("dba", "app");
    fresh.batch("CREATE EXTENSION pg_recur");
    let expected = catalog(&mut fresh);
    let version: String = fresh.value(
        "SELECT extversion FROM pg_extension WHERE extname = 'pg_recur'",
        &[],
    );
    drop(fresh);

    let current = fs::read_to_string(Scripts::folder().join(format!("pg_recur--{version}.sql")))
        .expect("the script");
    let begin = current
        .find("CREATE FUNCTION recur.revoke_access")
        .expect("the function");
    let end = begin + current[begin..].find("COMMENT ON").unwrap();
    let end = end + current[end..].find(";\n").unwrap() + 2;
    let mut scripts = Scripts(Vec::new());
    scripts.install(
        "pg_recur--0.0.0-test.sql",
        &format!(
            "{current}\nDROP FUNCTION recur.revoke_access(name);
             ALTER TABLE recur.tenants RENAME COLUMN changed_at TO touched_at;
             COMMENT ON COLUMN recur.tenants.touched_at IS 'old';
             ALTER TABLE recur.definitions DROP CONSTRAINT definitions_max_attempts_positive;"
        ),
    );
    scripts.install(
        &format!("pg_recur--0.0.0-test--{version}.sql"),
        &format!(
            "{}\nALTER FUNCTION recur.revoke_access(name) OWNER TO @extowner@;
             REVOKE ALL ON FUNCTION recur.revoke_access(name) FROM PUBLIC;
             ALTER TABLE recur.tenants RENAME COLUMN touched_at TO changed_at;
             COMMENT ON COLUMN recur.tenants.changed_at IS 'When it got its latest action';
             ALTER TABLE recur.definitions ADD CONSTRAINT definitions_max_attempts_positive CHECK (max_attempts > 0);",
            &current[begin..end],
        ),
    );
    let mut versions = vec!["0.0.0-test".to_owned()];
    versions.extend(released());
    for from in versions {
        let mut admin = cluster.session("postgres");
        admin.batch("DROP DATABASE app WITH (FORCE)");
        admin.batch("CREATE DATABASE app OWNER dba");
        let mut session = cluster.session_as("dba", "app");
        session.batch(&format!("CREATE EXTENSION pg_recur VERSION '{from}'"));
        session.batch("SELECT recur.create('every second', '* * * * * *', 'p', 'a')");
        assert_ne!(catalog(&mut session), expected, "{from} is not older");
        let action: String = session.value("SELECT a::text FROM recur.definitions AS a", &[]);
        session.batch("ALTER EXTENSION pg_recur UPDATE");
        assert_eq!(catalog(&mut session), expected, "from {from}");
        assert_eq!(
            session.value::<String>("SELECT a::text FROM recur.definitions AS a", &[]),
            action
        );
        fires(&cluster);
        cluster.configure("recur.enabled = off");
        cluster.reload();
    }
}
