//! Jobs of pg_cron become actions. With Debian's pg_cron where it is installed, and with a table like that of 1.6.

use pg_recur_tests::{Cluster, Session, eventually};

const IMPORT: &str = "SELECT coalesce(action, '') || ': ' || status FROM recur.import_pg_cron(";

/// What an import says of each job.
fn import(session: &mut Session, arguments: &str) -> Vec<String> {
    session.texts(&format!("{IMPORT}{arguments})"), &[])
}

/// The note of a job.
fn note(session: &mut Session, action: &str) -> String {
    session.value(
        "SELECT coalesce(note, '') FROM recur.import_pg_cron() WHERE action = $1",
        &[&action],
    )
}

/// A table like that of pg_cron 1.6.
fn fixture(session: &mut Session) {
    session.batch(
        "CREATE SCHEMA cron;
         CREATE TABLE cron.job (
             jobid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, schedule text NOT NULL, command text NOT NULL,
             nodename text NOT NULL DEFAULT 'localhost', nodeport int NOT NULL DEFAULT current_setting('port')::int,
             database text NOT NULL DEFAULT current_database(), username text NOT NULL DEFAULT current_user,
             active boolean NOT NULL DEFAULT true, jobname text)",
    );
}

/// Adds a job that does nothing.
fn job(session: &mut Session, name: &str, schedule: &str) {
    session.execute(
        "INSERT INTO cron.job (jobname, schedule, command) VALUES ($1, $2, 'SELECT 1')",
        &[&name, &schedule],
    );
}

/// A server with Debian's pg_cron and some jobs; None where there is none.
fn real() -> Option<(Cluster, Session)> {
    let available = "pg_available_extensions WHERE name = 'pg_cron'";
    if Cluster::quiet().database("app").count(available) == 0 {
        println!("skipped: this server has no pg_cron (scripts/pg-cron.sh installs Debian's)");
        return None;
    }
    let settings = "shared_preload_libraries = 'pg_recur, pg_cron'\ncron.database_name = 'app'";
    let cluster = Cluster::preloaded(settings);
    let mut session = cluster.database("app");
    session.batch(
        "CREATE EXTENSION pg_cron;
         CREATE TABLE seen (who name DEFAULT current_user); GRANT INSERT ON seen TO PUBLIC;
         CREATE ROLE ann LOGIN; GRANT USAGE ON SCHEMA cron TO ann;
         SELECT recur.grant_access('ann', 'sql')",
    );
    session.batch(
        "SELECT cron.schedule('nightly', '0 3 * * *', 'INSERT INTO seen DEFAULT VALUES');
         SELECT cron.schedule('*/5 * * * *', 'SELECT 5');
         SELECT cron.schedule('odd mondays', '0 0 */2 * 1', 'VACUUM seen');
         SELECT cron.schedule('begin', '0 4 * * *', 'BEGIN; SELECT 1; COMMIT');
         SELECT cron.schedule('many', '0 4 * * *', 'SELECT 1; VACUUM');
         SELECT cron.schedule('off', '0 6 * * * *', 'SELECT 6');
         SELECT cron.alter_job(jobid, active => false) FROM cron.job WHERE jobname = 'off';
         SELECT cron.schedule_in_database('other', '0 7 * * *', 'SELECT ''7''', 'postgres')",
    );
    let command = "INSERT INTO seen DEFAULT VALUES";
    cluster.session_as("ann", "app").batch(&format!(
        "SELECT cron.schedule('hers', '0 8 * * *', '{command}')"
    ));
    Some((cluster, session))
}

/// What an import says of those jobs, where it says this of those that can be imported.
fn outcomes(imported: &str) -> Vec<String> {
    [
        ("nightly", imported),
        ("pg_cron job 2", imported),
        ("odd mondays", imported),
        ("begin", "refused"),
        ("many", "refused"),
        ("off", imported),
        ("other", "other database"),
        ("hers", imported),
    ]
    .map(|(action, status)| format!("{action}: {status}"))
    .to_vec()
}

#[test]
fn jobs_of_the_real_pg_cron_are_imported() {
    let Some((_cluster, mut session)) = real() else {
        return;
    };
    assert_eq!(import(&mut session, ""), outcomes("would be created"));
    assert_eq!(session.count("recur.recurring_actions"), 0);
    for (action, said) in [
        ("begin", "must not control transactions"),
        ("many", "must run alone"),
        ("odd mondays", "requires both day fields"),
        ("off", "ignores \"*\""),
        (
            "other",
            "\\c postgres\nSELECT recur.create_sql('other', '0 7 * * *', 'SELECT ''7'''",
        ),
    ] {
        let note = note(&mut session, action);
        assert!(note.contains(said), "{action}: {note}");
    }
    let done = import(&mut session, "dry_run => false");
    assert_eq!(done, outcomes("created"));
    let actions = session.texts(
        "SELECT concat_ws('|', name, owner, schedule, timezone, overlap, enabled) FROM recur.recurring_actions
          WHERE namespace = 'cron' AND provider = 'sql' ORDER BY metadata ->> 'pg_cron_jobid'",
        &[],
    );
    assert_eq!(
        actions,
        [
            "nightly|postgres|0 3 * * *|UTC|queue_one|t",
            "pg_cron job 2|postgres|*/5 * * * *|UTC|queue_one|t",
            "odd mondays|postgres|0 0 */2 * +MON|UTC|queue_one|t",
            "off|postgres|0 6 * * *|UTC|queue_one|f",
            "hers|ann|0 8 * * *|UTC|queue_one|t",
        ]
    );
    session.batch(
        "SELECT recur.trigger(id) FROM recur.recurring_actions WHERE name IN ('nightly', 'hers')",
    );
    eventually("both have run", || session.count("seen") == 2);
    assert_eq!(session.count("seen WHERE who = 'ann'"), 1);
}

#[test]
fn an_import_from_the_real_pg_cron_is_repeated_and_takes_over() {
    let Some((cluster, mut session)) = real() else {
        return;
    };
    session.batch(
        "SELECT recur.import_pg_cron(dry_run => false);
         SELECT cron.alter_job(jobid, schedule => '0 2 * * *') FROM cron.job WHERE jobname = 'nightly'",
    );
    let mut again = outcomes("unchanged");
    again[0] = "nightly: would be updated".to_owned();
    assert_eq!(import(&mut session, ""), again);
    again[0] = "nightly: updated".to_owned();
    assert_eq!(import(&mut session, "dry_run => false"), again);
    assert_eq!(session.count("recur.recurring_actions"), 5);
    let nightly = "SELECT schedule::text FROM recur.recurring_actions WHERE name = 'nightly'";
    assert_eq!(session.texts(nightly, &[]), ["0 2 * * *"]);

    // She sees her own job only, and may not deactivate it: pg_cron reserves that for those it is granted to.
    let mut ann = cluster.session_as("ann", "app");
    assert_eq!(import(&mut ann, ""), ["hers: unchanged"]);
    let (code, ..) = ann.error("SELECT recur.import_pg_cron(dry_run => false, deactivate => true)");
    assert_eq!(code, "42501");

    let shown = import(&mut session, "deactivate => true");
    assert_eq!(shown, outcomes("unchanged"));
    assert_eq!(session.count("cron.job WHERE active"), 7);
    let done = import(&mut session, "dry_run => false, deactivate => true");
    assert_eq!(done, outcomes("unchanged"));
    let active = "SELECT jobname FROM cron.job WHERE active ORDER BY jobid";
    assert_eq!(session.texts(active, &[]), ["begin", "many", "other"]);
    // What has moved is changed here, and another import leaves it.
    session.batch(
        "SELECT recur.update('nightly', '{\"schedule\": \"0 1 * * *\"}', namespace => 'cron')",
    );
    let done = import(&mut session, "dry_run => false, deactivate => true");
    assert_eq!(done, outcomes("unchanged"));
    assert_eq!(session.texts(nightly, &[]), ["0 1 * * *"]);
    assert_eq!(session.count("recur.recurring_actions WHERE enabled"), 4);
}

#[test]
fn intervals_last_days_and_the_time_zone_of_pg_cron() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    fixture(&mut session);
    job(&mut session, "often", "30 seconds");
    job(&mut session, "month", "30 2 $ * *");
    job(&mut session, "never", "0 9-5 * * *");
    job(&mut session, "boot", "@reboot");
    session.batch("SET cron.timezone = 'Europe/Berlin'; SET timezone = 'Europe/Berlin'");
    assert_eq!(
        import(&mut session, "'moved', false"),
        [
            "often: created",
            "month: created",
            "never: refused",
            "boot: refused"
        ]
    );
    let actions = session.texts(
        "SELECT concat_ws('|', name, schedule, timezone, starts_at > now()) FROM recur.recurring_actions
          WHERE namespace = 'moved' ORDER BY name",
        &[],
    );
    assert_eq!(
        actions,
        [
            "month|30 2 L * *|Europe/Berlin",
            "often|30s|Europe/Berlin|t"
        ]
    );
    let same = session.count(
        "recur.import_pg_cron('moved') WHERE runs = pg_cron_runs AND cardinality(runs) = 3 AND status = 'unchanged'",
    );
    assert_eq!(same, 2);
    let at = session.texts(
        "SELECT to_char(run, 'HH24:MI') FROM recur.import_pg_cron(), unnest(pg_cron_runs) AS run
          WHERE action = 'month'",
        &[],
    );
    assert_eq!(at, ["02:30", "02:30", "02:30"]);
    assert!(note(&mut session, "never").contains("pg_cron never runs"));
    assert!(note(&mut session, "boot").contains("is not a time"));
    session.batch("SET cron.timezone = 'Nowhere'");
    assert!(
        note(&mut session, "month").contains("time zone \"Nowhere\" is not in the IANA database")
    );
}

#[test]
fn day_fields_mean_here_what_they_mean_in_pg_cron() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    fixture(&mut session);
    for (schedule, stored) in [
        ("0 0 */2 * 1", "0 0 */2 * +MON"),
        ("0 0 1 * */2", "0 0 1 * +*/2"),
        ("0 0 13 * 5", "0 0 13 * FRI"),
        ("0 0 1-31 * 1", "0 0 * * *"),
        ("0 0 */1 * 1", "0 0 * * MON"),
        ("0 0 $ * 1", "0 0 L * MON"),
    ] {
        session.batch("TRUNCATE cron.job");
        job(&mut session, "days", schedule);
        let rows = session.rows(
            "SELECT schedule, runs = pg_cron_runs, cardinality(runs) FROM recur.import_pg_cron()",
            &[],
        );
        let row = &rows[0];
        assert_eq!(row.get::<_, &str>(0), stored, "{schedule}");
        assert!(row.get::<_, bool>(1), "{schedule}");
        assert_eq!(row.get::<_, i32>(2), 3, "{schedule}");
    }
    // On Mondays that are odd days of their month, in pg_cron and here.
    session.batch("TRUNCATE cron.job");
    job(&mut session, "days", "0 0 */2 * 1");
    session.batch("SET timezone = 'UTC'");
    let others = session.count(
        "recur.import_pg_cron(), unnest(pg_cron_runs || runs) AS run
          WHERE extract(dow FROM run) <> 1 OR extract(day FROM run)::int % 2 = 0",
    );
    assert_eq!(others, 0);
}

#[test]
fn what_can_not_be_imported_is_listed() {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let mut session = cluster.database("app");
    session.assert_error(
        "SELECT recur.import_pg_cron()",
        "42P01",
        "there is no table cron.job in database \"app\"",
    );
    fixture(&mut session);
    session.batch(
        "CREATE ROLE ann LOGIN; CREATE ROLE ben LOGIN; SELECT recur.grant_access('ann', 'sql');
         GRANT USAGE ON SCHEMA cron TO ann; GRANT SELECT ON cron.job TO ann;
         INSERT INTO cron.job (jobname, schedule, command, username, database, nodename) VALUES
                ('hers', '0 1 * * *', 'SELECT 1', 'ann', 'app', 'localhost'),
                ('his', '0 1 * * *', 'SELECT 1', 'ben', 'app', ''),
                ('gone', '0 1 * * *', 'SELECT 1', 'nobody', 'app', '/run'),
                ('far', '0 1 * * *', 'SELECT 1', 'ann', 'app', 'db.example.com'),
                ('lost', '0 1 * * *', 'SELECT 1', 'ann', 'dropped', 'localhost'),
                ('taken', '0 1 * * *', 'SELECT 1', 'ann', 'app', 'localhost')",
    );
    let mut ann = cluster.session_as("ann", "app");
    ann.batch("SELECT recur.create('taken', '@daily', 'app', 'work', namespace => 'cron')");
    assert_eq!(
        import(&mut ann, "dry_run => false"),
        [
            "hers: created",
            "his: refused",
            "gone: refused",
            "far: refused",
            "lost: refused",
            "taken: refused"
        ]
    );
    for (action, reason) in [
        ("his", "ann may not SET ROLE to this role"),
        ("gone", "ann may not SET ROLE to this role"),
        ("far", "runs it on host db.example.com"),
        ("lost", "no database \"dropped\""),
        ("taken", "is no SQL action"),
    ] {
        let note = note(&mut ann, action);
        assert!(note.contains(reason), "{action}: {note}");
    }
    // She may not update the table, so nothing of the import stays.
    ann.batch("SELECT recur.delete('hers', namespace => 'cron')");
    let (code, ..) = ann.error("SELECT recur.import_pg_cron(dry_run => false, deactivate => true)");
    assert_eq!(code, "42501");
    assert_eq!(ann.count("recur.recurring_actions"), 1);
    // Nor is a job deactivated whose action is paused.
    session.batch(
        "SELECT recur.import_pg_cron(dry_run => false);
         SELECT recur.pause(id) FROM recur.recurring_actions WHERE name = 'hers';
         SELECT recur.import_pg_cron(dry_run => false, deactivate => true)",
    );
    assert_eq!(
        session.count("cron.job WHERE jobname = 'hers' AND active"),
        1
    );
    assert!(note(&mut session, "hers").contains("paused here"));
    session.batch(
        "SELECT recur.resume(id) FROM recur.recurring_actions WHERE name = 'hers';
         SELECT recur.import_pg_cron(dry_run => false, deactivate => true)",
    );
    let active = session.texts(
        "SELECT jobname FROM cron.job WHERE active ORDER BY jobid",
        &[],
    );
    assert_eq!(active, ["gone", "far", "lost", "taken"]);
}

#[test]
fn a_table_that_anybody_may_have_made_is_not_read() {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let mut session = cluster.database("app");
    session.batch(
        "CREATE ROLE ann LOGIN; GRANT CREATE ON DATABASE app TO ann;
         SELECT recur.grant_access('ann', 'sql')",
    );
    let mut ann = cluster.session_as("ann", "app");
    fixture(&mut ann);
    ann.batch(
        "INSERT INTO cron.job (jobname, schedule, command, username)
         VALUES ('a', '0 1 * * *', 'ALTER ROLE ann SUPERUSER', 'postgres')",
    );
    let (code, message, hint) = session.error("SELECT recur.import_pg_cron(dry_run => false)");
    assert_eq!(code, "42501");
    assert!(
        message.contains("is not trusted: it belongs to ann"),
        "{message}"
    );
    assert!(hint.contains("Look through it"), "{hint}");
    // To herself it is worth as much as she is.
    assert_eq!(import(&mut ann, "dry_run => false"), ["a: refused"]);
    // A view, or what lacks columns of later versions.
    session.batch(
        "DROP SCHEMA cron CASCADE; CREATE SCHEMA cron; CREATE VIEW cron.job AS SELECT 1 AS jobid",
    );
    let (code, ..) = session.error("SELECT recur.import_pg_cron()");
    assert_eq!(code, "42P01");
    session.batch("DROP VIEW cron.job; DROP SCHEMA cron");
    fixture(&mut session);
    session.batch(
        "ALTER TABLE cron.job DROP active, DROP jobname;
         INSERT INTO cron.job (schedule, command) VALUES ('@daily', 'VACUUM')",
    );
    assert_eq!(
        import(&mut session, "dry_run => false"),
        ["pg_cron job 1: created"]
    );
}
