//! A database is dumped and restored, copied and upgraded: everything is there again, and fires.

use pg_recur_tests::{Cluster, Session, eventually};
use std::process::Command;

/// Dispatches nothing until it is enabled: what is compared stands still.
pub(super) const STILL: &str = "recur.enabled = off";

fn run(mut command: Command) -> String {
    let output = command.output().expect("the program runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {errors}");
    assert_eq!(errors, "", "{command:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Roles as both clusters have them, and a database of `owner`, empty.
pub(super) fn prepare(cluster: &Cluster, owner: &str) {
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
        "SELECT recur.create('every second', '* * * * * *', 'p', 'a', '{\"k\": \"ü\\n\"}',
                             labels => '{\"team\": \"red\"}');
         SELECT recur.create('yearly', '@yearly', 'p', 'a', timezone => 'Europe/Berlin', context => '{\"n\": 1}',
                             subject => 's');
         SELECT recur.update(recur.id_of('yearly', subject => 's'), '{\"context\": {\"n\": 2}}');
         SELECT recur.pause(id, 'holidays')
           FROM recur.create('paused', '3h', 'p', 'a', starts_at => '2020-01-01Z') AS id;
         SELECT recur.create('twin', '90m', 'p', 'a');
         SELECT recur.create('twin', '90m', 'p', 'a', on_existing => 'add_another');
         SELECT recur.delete(id) FROM recur.create('gone', '@daily', 'p', 'a') AS id;
         SELECT recur.create('later', '0 0 29 2 *', 'p', 'a',
                             retry_backoff => '{\"base\": \"1 s\", \"factor\": 1.5, \"cap\": \"1 min\"}');
         SELECT recur.trigger(id, overlap => 'allow') FROM recur.recurring_actions, generate_series(1, 5);
         SELECT recur.receive('p', 'a', '\\x00ff');
         SELECT recur.set_journey('j', '1', '{\"s\": {\"type\": \"task\"}}');
         SELECT recur.schedule_journey('j', 's', NULL, 'P1Y', 3, NULL, '{}');
         SELECT recur.create_endpoint('crm', 'https://crm.example', '{*}', headers => '{\"k\": \"v\"}');
         SELECT recur.rotate_webhook_secret('crm')",
    );
    let mut superuser = cluster.session("app");
    // What a year does to it: an end in the past must not hinder the restore.
    superuser.batch(
        "UPDATE recur_internal.definitions SET starts_at = '2020-01-01Z', ends_at = '2020-06-01Z' WHERE name = 'paused';
         UPDATE recur_internal.timers SET ended_reason = 'expired', run_count = 7, last_run_at = '2020-05-31Z',
                last_error = 'e', error_count = 1
           WHERE action_id = recur.id_of('paused');
         SELECT recur_internal.open_next_partition('7 days', now() - interval '3 days');
         SELECT recur_internal.open_next_partition('7 days', now())",
    );
    // Dispatches in every state: pending after a failure, running, completed, failed, cancelled, and pending.
    superuser.batch(
        "SELECT recur.fail(id, attempt, 'broken') FROM recur.claim(6);
         SELECT recur.complete(id, attempt, '{\"n\": 1}', '{\"n\": 3}') FROM recur.claim(6);
         SELECT recur.fail(id, attempt, 'broken', retry => false) FROM recur.claim(6);
         SELECT recur.cancel(id) FROM recur.claim(2);
         SELECT recur.cancel(id) FROM (SELECT id FROM recur.dispatches WHERE attempt = 0 LIMIT 3) AS d;
         SELECT recur.claim(3)",
    );
    leave(cluster);
}

/// Two owners whose roles are gone.
fn leave(cluster: &Cluster) {
    for leaver in ["first_leaver", "second_leaver"] {
        let mut superuser = cluster.session("app");
        superuser.batch(&format!(
            "CREATE ROLE {leaver} LOGIN; SELECT recur.grant_access('{leaver}', 'author')"
        ));
        cluster
            .session_as(leaver, "app")
            .batch("SELECT recur.create('of one who left', '@yearly', 'p', 'a')");
        superuser.batch(&format!(
            "SELECT recur.revoke_access('{leaver}'); DROP ROLE {leaver}"
        ));
    }
}

/// Every row of every table and view of the extension, and what comes next. Oids of roles differ between clusters, and
/// four views say how the server is doing, or how long ago something was.
fn contents(session: &mut Session) -> Vec<String> {
    session.batch("SET timezone = 'UTC'");
    let tables: Vec<String> = session.column(
        "SELECT oid::regclass::text FROM pg_class
          WHERE relnamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace) AND relkind IN ('r', 'v', 'S')
            AND oid <> ALL ('{recur.monitoring,recur.overview,recur.stats,recur.workers,
                              recur_internal.armed_owners,recur_internal.action_states}'::regclass[]) ORDER BY 1",
        &[],
    );
    tables
        .iter()
        .flat_map(|table| {
            let columns = match table.as_str() {
                "recur_internal.event_ids" | "recur_internal.owners_id_seq" => "last_value",
                "recur_internal.owners" => "id, name",
                "recur_internal.levels" => "name, level",
                "recur_internal.dispatch_templates" => "to_jsonb(t) - 'definition'",
                _ => "t.*",
            };
            session.column(
                &format!(
                    "SELECT '{table}: ' || r::text FROM (SELECT {columns} FROM {table} AS t) AS r
                      ORDER BY 1"
                ),
                &[],
            )
        })
        .collect()
}

pub(super) fn fires(cluster: &Cluster) {
    cluster.configure("recur.enabled = on");
    cluster.reload();
    let mut session = cluster.session("app");
    let before = session.count("recur.dispatches");
    eventually("it fires there", || {
        session.count("recur.dispatches") > before
    });
}

/// Dumps the database of one cluster and restores it in another.
fn dump_and_restore(source: &Cluster, target: &Cluster, owner: &str) {
    let file = source.folder().join("dump");
    let mut dump = source.program("pg_dump", owner);
    dump.args(["--format=custom", "--dbname=app", "--file"])
        .arg(&file);
    run(dump);
    // Where the other cluster's programs find it.
    let mut restore = target.program("pg_restore", owner);
    restore.args(["--exit-on-error", "--dbname=app"]).arg(&file);
    // Only a superuser may restore the access lists of what a superuser owns. The levels come back all the same.
    if owner != "postgres" {
        restore.arg("--no-privileges");
    }
    run(restore);
}

#[test]
fn a_dump_brings_everything_back() {
    for owner in ["postgres", "dba"] {
        let (source, target) = (Cluster::preloaded(STILL), Cluster::preloaded(STILL));
        prepare(&source, owner);
        fill(&source, owner);
        // Roles have other oids there.
        target.session("postgres").batch("CREATE ROLE earlier");
        prepare(&target, owner);
        dump_and_restore(&source, &target, owner);
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
            "history_partitions",
            "event_ids",
            "owners",
            "levels",
            "journeys",
            "home",
        ] {
            let name = format!("recur_internal.{table}");
            assert!(
                before.iter().any(|row| row.starts_with(&name)),
                "nothing in {table}"
            );
        }
        assert_eq!(before, after, "{owner}");
        // Owners are the roles of the same names; those who left own nothing that anybody sees but admins.
        let mut session = target.session("app");
        assert_eq!(
            session.texts(
                "SELECT concat_ws(' ', name, pg_get_userbyid(role)) FROM recur_internal.owners ORDER BY id",
                &[]
            ),
            ["alice alice", "first_leaver", "second_leaver"]
        );
        // The rights that were handed out, too.
        let mut alice = target.session_as("alice", "app");
        assert_eq!(alice.count("recur.recurring_actions"), 7);
        alice.batch("SELECT recur.update(recur.id_of('twin'), '{\"priority\": 1}')");
        let mut worker = target.session_as("worker", "app");
        assert_eq!(worker.error("SELECT recur.pause_all()").0, "42501");
        assert_eq!(worker.count("recur.claim(10)"), 0);
        // A superuser owns every object, but for the view that authors write to.
        let others = session.texts(
            "SELECT concat_ws(' ', oid::regclass, relowner::regrole) FROM pg_class
              WHERE relnamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)
                AND relowner <> 'postgres'::regrole
             UNION ALL
             SELECT concat_ws(' ', oid::regprocedure, proowner::regrole) FROM pg_proc
              WHERE pronamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)
                AND proowner <> 'postgres'::regrole",
            &[],
        );
        assert_eq!(others, ["recur.recurring_actions recur_views"]);
        let owns_extension: bool = session.value(
            "SELECT extowner = $1::text::regrole FROM pg_extension WHERE extname = 'pg_recur'",
            &[&owner],
        );
        assert!(owns_extension, "{owner} restored the extension");
        target.session_as(owner, "app").batch("SELECT recur.arm()");
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
        !script.contains("CREATE TABLE recur") && !script.contains("CREATE VIEW recur"),
        "what belongs to the extension is not dumped as if it were the user's"
    );
    let output = target.psql("app", &script);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut session = target.session("app");
    assert_eq!(session.count("recur.recurring_actions"), 0);
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
    cluster.session("app").batch("SELECT recur.arm()");
    fires(&cluster);
}
