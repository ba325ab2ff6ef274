//! What a database decides for itself, instead of the server's configuration.

use pg_recur_tests::{Cluster, Session, eventually};
use uuid::Uuid;

/// The value of a setting and where it comes from, as this session sees it.
fn seen(session: &mut Session, name: &str) -> (String, String) {
    let sql = "SELECT value, source FROM recur.settings WHERE name = 'recur.' || $1 AND namespace IS NULL";
    let row = &session.rows(sql, &[&name])[0];
    (row.get(0), row.get(1))
}

fn pair(value: &str, source: &str) -> (String, String) {
    (value.to_owned(), source.to_owned())
}

fn zone_of_a_new_action(session: &mut Session) -> String {
    let id: Uuid = session.value(
        "SELECT recur.create('z', '@yearly', 'p', 'a', on_existing => 'add_another')",
        &[],
    );
    let sql = "SELECT timezone::text FROM recur.recurring_actions WHERE id = $1";
    session.value(sql, &[&id])
}

#[test]
fn a_setting_holds_in_every_session_from_the_commit_on() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mut other = cluster.session("app");
    assert_eq!(zone_of_a_new_action(&mut other), "UTC");
    session.batch("BEGIN; SELECT recur.set_setting('default_timezone', 'Europe/Berlin')");
    assert_eq!(zone_of_a_new_action(&mut session), "Europe/Berlin");
    assert_eq!(zone_of_a_new_action(&mut other), "UTC");
    session.batch("ROLLBACK");
    assert_eq!(zone_of_a_new_action(&mut session), "UTC");
    session.batch(
        "BEGIN; SAVEPOINT s; SELECT recur.set_setting('default_timezone', 'Asia/Tokyo'); ROLLBACK TO s;
         SELECT recur.set_setting('recur.default_timezone', 'Europe/Berlin'); COMMIT",
    );
    assert_eq!(zone_of_a_new_action(&mut session), "Europe/Berlin");
    assert_eq!(zone_of_a_new_action(&mut other), "Europe/Berlin");
    assert_eq!(
        seen(&mut other, "default_timezone"),
        pair("Europe/Berlin", "database")
    );
    // What a session says for itself comes first, also where it says what the server says.
    other.batch("SET recur.default_timezone = 'UTC'");
    assert_eq!(zone_of_a_new_action(&mut other), "UTC");
    assert_eq!(seen(&mut other, "default_timezone"), pair("UTC", "session"));
    other.batch("RESET recur.default_timezone");
    assert_eq!(zone_of_a_new_action(&mut other), "Europe/Berlin");
    for reset in [
        "SELECT recur.reset_setting('default_timezone')",
        "SELECT recur.set_setting('default_timezone', NULL)",
    ] {
        session.batch("SELECT recur.set_setting('default_timezone', 'Europe/Berlin')");
        session.batch(reset);
        assert_eq!(zone_of_a_new_action(&mut other), "UTC");
        assert_eq!(seen(&mut other, "default_timezone"), pair("UTC", "default"));
    }
    // Other databases have their own.
    session.batch("SELECT recur.set_setting('default_timezone', 'Europe/Berlin')");
    assert_eq!(zone_of_a_new_action(&mut cluster.database("second")), "UTC");
}

#[test]
fn workers_follow_without_a_reload() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    let recorded = "recur.events WHERE kind = 'occurrence.dispatched'";
    session.batch("SELECT recur.create('before', '1h', 'p', 'a', namespace => 'loud')");
    eventually("it fires", || session.count("recur.dispatches") == 1);
    assert_eq!(session.count(recorded), 0);
    session.batch(
        "SELECT recur.set_setting('record_dispatches', 'on', namespace => 'loud');
         SELECT recur.create('quiet', '1h', 'p', 'a'), recur.create('loud', '1h', 'p', 'a', namespace => 'loud')",
    );
    eventually("both fire", || session.count("recur.dispatches") == 3);
    assert_eq!(session.count(recorded), 1);
    // A namespace comes before the database.
    session.batch(
        "SELECT recur.set_setting('record_dispatches', 'yes'),
                recur.set_setting('record_dispatches', 'off', 'loud');
         SELECT recur.create('third', '1h', 'p', 'a'), recur.create('fourth', '1h', 'p', 'a', namespace => 'loud')",
    );
    eventually("both fire", || session.count("recur.dispatches") == 5);
    let names = session.texts(
        "SELECT a.namespace || ' ' || a.name FROM recur.events AS e JOIN recur.recurring_actions AS a
             ON a.id = e.action_id WHERE e.kind = 'occurrence.dispatched' ORDER BY 1",
        &[],
    );
    assert_eq!(names, ["default third", "loud loud"]);
    let rows = session.texts(
        "SELECT concat_ws(' ', value, source, namespace) FROM recur.settings WHERE name = 'recur.record_dispatches'",
        &[],
    );
    assert_eq!(rows, ["yes database", "off namespace loud"]);
}

#[test]
fn a_database_switches_itself_off_and_on() {
    let cluster = Cluster::start();
    let mut still = cluster.database("still");
    let mut live = cluster.database("live");
    still.batch("SELECT recur.set_setting('enabled', 'off')");
    for session in [&mut still, &mut live] {
        session.batch("SELECT recur.create('now', '1h', 'p', 'a')");
    }
    eventually("the other database fires", || {
        live.count("recur.dispatches") == 1
    });
    let looked =
        "recur.workers WHERE database = 'still' AND kind LIKE 'dispatcher%' AND state = 'sleeping'";
    eventually("the dispatcher sleeps", || still.count(looked) == 1);
    assert_eq!(still.count("recur.dispatches"), 0);
    let findings = still.texts(
        "SELECT severity || ': ' || finding FROM recur.doctor()",
        &[],
    );
    assert_eq!(
        findings,
        ["error: recur.enabled is off in this database: nothing fires by itself"]
    );
    still.batch("SELECT recur.reset_setting('enabled')");
    eventually("it fires", || still.count("recur.dispatches") == 1);
    // No database switches on what the operator has switched off.
    cluster.configure("recur.enabled = off");
    cluster.reload();
    eventually("the workers leave", || still.count("recur.workers") == 0);
    let (_, message, _) = still.error("SELECT recur.set_setting('enabled', 'on')");
    assert_eq!(
        message,
        "invalid recur.enabled \"on\": the server's value is the limit, and a database can only switch it off"
    );
}

#[test]
fn a_database_may_only_tighten_what_bounds_it() {
    let cluster = Cluster::preloaded(
        "recur.enabled = off\nrecur.max_payload = 100kB\nrecur.min_interval = 1min\n
         recur.max_actions_per_tenant = 10",
    );
    let mut session = cluster.database("app");
    for (name, loose, strict) in [
        ("max_payload", "1MB", "10kB"),
        ("min_interval", "1s", "1h"),
        ("max_actions_per_tenant", "11", "2"),
        ("max_actions_per_tenant", "0", "2"),
        ("max_ahead_per_owner", "100001", "10"),
    ] {
        let (code, message, _) =
            session.error(&format!("SELECT recur.set_setting('{name}', '{loose}')"));
        assert_eq!(code, "22023", "{message}");
        assert!(
            message.contains("the server's value is the limit"),
            "{message}"
        );
        session.batch(&format!("SELECT recur.set_setting('{name}', '{strict}')"));
        assert_eq!(seen(&mut session, name), pair(strict, "database"));
    }
    assert_eq!(
        session.error("SELECT recur.create('n', '1m', 'p', 'a')").0,
        "22023"
    );
    session.batch("SELECT recur.create('n', '1h', 'p', 'a'), recur.create('m', '1h', 'p', 'a')");
    let (_, message, _) = session.error("SELECT recur.create('o', '1h', 'p', 'a')");
    assert!(message.contains("all of the 2 actions"), "{message}");
    let payload = "SELECT recur.enqueue('p', 'a', jsonb_build_object('k', repeat('x', 20000)))";
    assert_eq!(session.error(payload).0, "22023");
    // Nor by rows that a restore brings.
    session.batch(
        "UPDATE recur_internal.settings SET value = '200MB' WHERE name = 'recur.max_payload'",
    );
    session.batch(payload);
    assert_eq!(seen(&mut session, "max_payload"), pair("100kB", "server"));
    let large = payload.replace("20000", "200000");
    assert_eq!(session.error(&large).0, "22023");
}

#[test]
fn values_are_checked_as_the_server_checks_them() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for (name, value, message) in [
        (
            "retention",
            "nonsense",
            "invalid value for parameter \"recur.retention\": \"nonsense\"",
        ),
        (
            "retention",
            "0",
            "0 min is outside the valid range for parameter \"recur.retention\" (1",
        ),
        (
            "check_interval",
            "1ms",
            "1 ms is outside the valid range for parameter \"recur.check_interval\" (100",
        ),
        (
            "record_dispatches",
            "2",
            "parameter \"recur.record_dispatches\" requires a Boolean value",
        ),
        (
            "default_timezone",
            "Mars",
            "invalid value for parameter \"recur.default_timezone\": \"Mars\"",
        ),
        (
            "notify_channel",
            "",
            "invalid value for parameter \"recur.notify_channel\": \"\"",
        ),
        (
            "notify_detail",
            "all",
            "invalid value for parameter \"recur.notify_detail\": \"all\"",
        ),
        (
            "dispatchers",
            "2",
            "invalid name \"recur.dispatchers\": only the server's configuration decides it",
        ),
        (
            "databases",
            "app",
            "invalid name \"recur.databases\": only the server's configuration decides it",
        ),
        (
            "retension",
            "7d",
            "invalid name \"retension\": there is no such setting",
        ),
        (
            "work_mem",
            "1GB",
            "invalid name \"work_mem\": there is no such setting",
        ),
    ] {
        let statement = format!("SELECT recur.set_setting('{name}', '{value}')");
        let (code, said, hint) = session.error(&statement);
        assert_eq!(code, "22023");
        assert!(said.starts_with(message), "{said}");
        if name == "retension" {
            assert_eq!(hint, "Did you mean recur.retention?");
        }
    }
}

#[test]
fn a_setting_has_a_name_a_place_and_a_unit() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.assert_error(
        "SELECT recur.set_setting('retention', '1d', namespace => 'n')",
        "22023",
        "invalid namespace \"n\": recur.retention can't differ between namespaces",
    );
    session.assert_error(
        "SELECT recur.set_setting(NULL, '1d')",
        "22023",
        "invalid name \"NULL\": must have a value",
    );
    session.batch("SELECT recur.set_setting('retention', '36h')");
    let hours: f64 = session.value(
        "SELECT extract(epoch FROM recur_internal.retention())::float8 / 3600",
        &[],
    );
    assert_eq!(hours as i64, 36);
    let unit =
        "SELECT concat_ws('; ', unit, allowed) FROM recur.settings WHERE name = 'recur.retention'";
    assert_eq!(session.value::<String>(unit, &[]), "min; 1 to 2147483647");
}

#[test]
fn only_admins_and_the_owner_of_the_database_set_them() {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let mut superuser = cluster.session("postgres");
    for role in ["dba", "admin", "author", "stranger"] {
        superuser.batch(&format!("CREATE ROLE {role} LOGIN"));
    }
    superuser.batch("CREATE DATABASE app OWNER dba");
    let mut dba = cluster.session_as("dba", "app");
    dba.batch(
        "CREATE EXTENSION pg_recur; SELECT recur.grant_access('admin', 'admin'), recur.grant_access('author', 'author');
         SELECT recur.set_setting('retention', '1d'), recur.set_setting('record_dispatches', 'on', 'secret')",
    );
    let mut admin = cluster.session_as("admin", "app");
    admin.batch("SELECT recur.set_setting('retention', '2d')");
    for role in ["author", "stranger"] {
        let mut session = cluster.session_as(role, "app");
        for statement in [
            "SELECT recur.set_setting('retention', '3d')",
            "SELECT recur.reset_setting('retention')",
            "SELECT recur_internal.checked_setting('retention', '3d', NULL)",
            "INSERT INTO recur_internal.settings VALUES (NULL, 'recur.retention', '3d')",
            "DELETE FROM recur_internal.settings",
        ] {
            assert_eq!(session.error(statement).0, "42501", "{role}: {statement}");
        }
    }
    // An author sees the values, and no names of namespaces.
    let mut author = cluster.session_as("author", "app");
    assert_eq!(seen(&mut author, "retention"), pair("2d", "database"));
    let namespaces = "recur.settings WHERE namespace IS NOT NULL";
    assert_eq!(author.count(namespaces), 0);
    assert_eq!(dba.count(namespaces), 1);
    assert_eq!(admin.count(namespaces), 1);
}

/// The owner of a database can restore any row.
#[test]
fn a_restored_row_that_does_not_hold_is_ignored_and_shown() {
    let cluster = Cluster::start();
    let mut superuser = cluster.session("postgres");
    superuser.batch("CREATE ROLE dba LOGIN");
    superuser.batch("CREATE DATABASE app OWNER dba");
    let mut dba = cluster.session_as("dba", "app");
    dba.batch(
        "CREATE EXTENSION pg_recur;
         INSERT INTO recur_internal.settings VALUES
             (NULL, 'recur.batch_size', '-1'), (NULL, 'recur.lookahead', '9 weeks'), (NULL, 'work_mem', '1TB'),
             (NULL, 'recur.dispatchers', '64'), (NULL, 'recur.databases', 'none'), ('n', 'recur.enabled', 'off'),
             (NULL, 'recur.notify_channel', repeat('c', 100)), (NULL, '', ''),
             (NULL, 'recur.check_interval', E'200ms\n; DROP TABLE x')",
    );
    assert_eq!(
        dba.error("INSERT INTO recur_internal.settings VALUES (NULL, 'recur.retention', repeat('x', 2000))").0,
        "23514"
    );
    let findings = dba.texts(
        "SELECT finding FROM recur.doctor() WHERE severity = 'warning'",
        &[],
    );
    assert_eq!(findings.len(), 9, "{findings:?}");
    let expected = "the row of setting \"recur.batch_size\" in recur_internal.settings is ignored: \
                    the value is invalid";
    assert!(findings.contains(&expected.to_owned()), "{findings:?}");
    assert_eq!(
        dba.count("recur.settings WHERE source IN ('database', 'namespace')"),
        0
    );
    // The workers go by the server's values.
    let mut session = cluster.session("app");
    session.batch("SELECT recur.create('now', '1h', 'p', 'a')");
    eventually("it fires", || session.count("recur.dispatches") == 1);
}

#[test]
fn a_dump_carries_them() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.set_setting('retention', '3d'), recur.set_setting('record_dispatches', 'on', 'n')",
    );
    let dump = cluster.dump("app");
    cluster.empty_database("copy", "");
    // A session that read the settings before the restore.
    let mut copy = cluster.session("copy");
    cluster.run_script("copy", &dump);
    assert_eq!(seen(&mut copy, "retention"), pair("3d", "database"));
    assert_eq!(copy.count("recur.settings WHERE namespace = 'n'"), 1);
}
