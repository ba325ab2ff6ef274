//! A copy of a database holds its fire until it is armed; the original goes on.

use pg_recur_tests::{Cluster, Session, Shutdown, eventually};
use std::fs;
use std::process::Stdio;

/// An action that is always due soon, and a dispatch that must not be handed out twice.
const FILL: &str = "SELECT recur.create('every second', '* * * * * *', 'p', 'a');
                    SELECT recur.enqueue('bank', 'charge card')";

/// A database with actions that fire.
fn original(cluster: &Cluster) -> Session {
    let mut session = cluster.database("app");
    session.batch(FILL);
    eventually("it fires", || {
        session.count("recur.dispatches WHERE provider = 'p'") > 0
    });
    session
}

/// A database that a dump was restored into.
fn restored(cluster: &Cluster, name: &str, dump: &str) -> Session {
    cluster.empty_database(name, "");
    cluster.run_script(name, dump);
    cluster.session(name)
}

/// Nothing fires, neither by a worker nor by hand, and nothing is handed out.
fn assert_held(copy: &mut Session, because: &str) {
    let (code, message, hint) = copy.error("SELECT * FROM recur.tick()");
    assert_eq!(code, "55000", "{message}");
    assert!(message.contains(because), "{message}");
    assert!(hint.starts_with("recur.arm()"), "{hint}");
    assert_eq!(copy.count("recur.claim(10)"), 0);
    assert_eq!(
        copy.value::<String>("SELECT state FROM recur.overview LIMIT 1", &[]),
        "held"
    );
    let held = "recur.doctor() WHERE severity = 'error' AND finding LIKE '%holds its fire%'";
    assert_eq!(copy.count(held), 1);
    // This wakes the worker, which looks once more.
    let since: String = copy.value("SELECT clock_timestamp()::text", &[]);
    copy.batch("UPDATE recur_internal.timers SET due_at = due_at");
    let looked = format!(
        "recur.workers WHERE database = current_database() AND kind LIKE 'dispatcher%' AND state = 'sleeping'
            AND state_since > '{since}'"
    );
    eventually("a worker has looked", || copy.count(&looked) == 1);
    assert_eq!(
        copy.count("recur.dispatches WHERE created_at > (SELECT restored_at FROM public.restored)"),
        0
    );
}

/// From when on dispatches would be new.
const NOTE: &str = "CREATE TABLE public.restored AS SELECT clock_timestamp() AS restored_at";

#[test]
fn a_restored_database_holds_its_fire_until_it_is_armed() {
    let cluster = Cluster::start();
    let mut session = original(&cluster);
    let dump = cluster.dump("app");
    let mut copy = restored(&cluster, "copy", &format!("{dump}\n{NOTE};"));
    assert_held(&mut copy, "database \"copy\" is a copy and holds its fire");
    // What a consumer sees, once a session.
    let said = cluster.run_script(
        "copy",
        "SELECT FROM recur.claim(1); SELECT FROM recur.claim(1);",
    );
    assert_eq!(said.matches("WARNING").count(), 1, "{said}");
    assert!(said.contains("is a copy and holds its fire"), "{said}");
    assert!(said.contains("recur.arm()"), "{said}");
    // What the operator sees, once.
    eventually("it is logged", || {
        cluster
            .log()
            .contains("WARNING:  pg_recur dispatcher: database \"copy\" is a copy")
    });
    copy.batch(
        "SELECT recur.set_setting('batch_size', '7'); SELECT recur.reset_setting('batch_size')",
    );
    assert_eq!(
        cluster
            .log()
            .matches("pg_recur dispatcher: database \"copy\" is a copy")
            .count(),
        1
    );
    // What was written ahead of its time when the dump was made is due by now.
    eventually("everything is due", || {
        copy.count("recur_internal.timers WHERE due_at > clock_timestamp()") == 0
            && copy.count("recur.dispatches WHERE available_at > clock_timestamp()") == 0
    });
    // The original goes on, also while the copy is armed.
    let pending = copy.count("recur.dispatches WHERE status = 'pending'");
    let said = cluster.run_script("copy", "SELECT recur.arm()");
    assert!(
        said.contains("is at home here from the commit on"),
        "{said}"
    );
    let due = format!("1 actions are overdue, {pending} pending dispatches");
    assert!(said.contains(&due), "{due}: {said}");
    for place in [&mut copy, &mut session] {
        let before = place.count("recur.dispatches");
        eventually("it fires", || place.count("recur.dispatches") > before);
        assert_eq!(place.count("recur.claim(1, '{bank}')"), 1);
        assert_eq!(
            place.count("recur.doctor() WHERE finding LIKE '%holds its fire%'"),
            0
        );
    }
    assert!(
        cluster
            .log()
            .contains("pg_recur: armed database=\"copy\" role=\"postgres\"")
    );
    let said = cluster.run_script("copy", "SELECT recur.arm()");
    assert!(said.contains("there is nothing to arm"), "{said}");
}

#[test]
fn a_copy_by_template_holds_and_arming_takes_part_in_transactions() {
    let cluster = Cluster::start();
    original(&cluster);
    cluster
        .session("postgres")
        .batch("CREATE DATABASE copy TEMPLATE app");
    let mut copy = cluster.session("copy");
    copy.batch(NOTE);
    assert_held(&mut copy, "is a copy");
    copy.batch("BEGIN; SELECT recur.arm()");
    assert_eq!(copy.count("recur.claim(1, '{bank}')"), 1);
    copy.batch("ROLLBACK");
    assert_held(&mut copy, "is a copy");
}

/// In whatever order the rows come, and with or without triggers: nothing fires in between.
#[test]
fn a_restore_in_progress_holds() {
    let cluster = Cluster::shared();
    original(&cluster);
    let mut dump = cluster.program("pg_dump", "postgres");
    dump.args(["--data-only", "--rows-per-insert=1000"])
        .arg(cluster.name_of("app"));
    let script = String::from_utf8(dump.output().expect("pg_dump").stdout).unwrap();
    let is_home = |line: &str| line.contains("INTO recur_internal.home ");
    let (start, rest) = script.split_at(script.find("INSERT INTO").expect("rows"));
    let mut statements: Vec<&str> = rest.split_inclusive(";\n").collect();
    let home = statements.remove(
        statements
            .iter()
            .position(|one| is_home(one))
            .expect("a home"),
    );
    assert!(
        statements
            .iter()
            .any(|one| one.contains("INTO recur_internal.timers "))
    );
    let rows = statements.concat();
    for (name, mode, first, second) in [
        ("one", "", rows.as_str(), home),
        ("two", "", home, rows.as_str()),
        (
            "three",
            "SET session_replication_role = replica;",
            rows.as_str(),
            home,
        ),
        (
            "four",
            "SET session_replication_role = replica;",
            home,
            rows.as_str(),
        ),
    ] {
        let mut copy = cluster.database(name);
        copy.batch(NOTE);
        // A session that knows the state of before.
        assert_eq!(copy.count("recur.claim(1)"), 0);
        cluster.run_script(name, &format!("{start}; {mode} {first}"));
        if first != home {
            assert_held(&mut copy, "was restored");
        }
        cluster.run_script(name, &format!("{start}; {mode} BEGIN; {second}; COMMIT"));
        assert_held(&mut copy, "is a copy");
    }
}

#[test]
fn an_announced_move_goes_on_by_itself() {
    let cluster = Cluster::shared();
    let mut session = original(&cluster);
    for (within, problem) in [
        ("0", "invalid within \"00:00:00\""),
        ("31 days", "at most 30 days"),
    ] {
        let (code, message, _) = session.error(&format!("SELECT recur.expect_move('{within}')"));
        assert_eq!(code, "22023");
        assert!(message.contains(problem), "{message}");
    }
    session.batch("SELECT recur.expect_move('1 hour')");
    let dump = cluster.dump("app");
    // The old place fires until it is stopped.
    let before = session.count("recur.dispatches");
    eventually("it fires", || session.count("recur.dispatches") > before);
    let mut copy = restored(&cluster, "copy", &dump);
    assert_eq!(
        copy.count("recur.doctor() WHERE finding LIKE '%holds its fire%'"),
        0
    );
    let before = copy.count("recur.dispatches");
    eventually("it goes on", || copy.count("recur.dispatches") > before);
    // The copy has its home now, and no announcement.
    let homes = "recur_internal.home WHERE move_until IS NULL
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    assert_eq!(copy.count(homes), 1);
    assert_eq!(copy.count("recur_internal.home"), 1);
}

#[test]
fn a_move_that_comes_too_late_or_was_taken_back_holds() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let (code, message, _) = session.error("SELECT recur.expect_move('1 hour')");
    assert_eq!(code, "55000");
    assert!(message.contains("has no actions yet"), "{message}");
    // A database whose clock is the server's, without workers.
    session.batch("DELETE FROM recur_internal.test_clock");
    session.batch(FILL);
    session.batch("SELECT recur.expect_move('1 hour')");
    // A look does not move it, and may be taken where nothing can be written.
    let mut arriving = restored(&cluster, "arriving", &cluster.dump("app"));
    arriving.batch("BEGIN READ ONLY; TABLE recur.overview; TABLE recur.recurring_actions; COMMIT");
    assert_eq!(
        arriving.count("recur_internal.home WHERE move_until IS NOT NULL"),
        1
    );
    arriving.batch("UPDATE recur_internal.home SET move_until = now() - interval '1 s'");
    assert_eq!(arriving.error("SELECT recur.tick()").0, "55000");
    arriving.batch("UPDATE recur_internal.home SET move_until = now() + interval '1 h'");
    assert_eq!(arriving.count("recur.claim(10)"), 1);
    session.batch("SELECT recur.expect_move(NULL)");
    let mut copy = restored(&cluster, "copy", &cluster.dump("app"));
    assert_eq!(copy.error("SELECT recur.tick()").0, "55000");
}

/// A physical clone has the same identifiers: the operator's label tells it apart.
#[test]
fn a_clone_at_another_site_holds() {
    let mut cluster = Cluster::preloaded("recur.site = 'production'");
    original(&cluster);
    cluster.configure("recur.site = 'staging'");
    cluster.restart(Shutdown::Fast);
    let mut clone = cluster.session("app");
    let (code, message, _) = clone.error("SELECT * FROM recur.tick()");
    assert_eq!(code, "55000", "{message}");
    eventually("a dispatcher sleeps", || {
        clone.count("recur.workers WHERE kind LIKE 'dispatcher%' AND state = 'sleeping'") == 1
    });
    let finding: String = clone.value(
        "SELECT finding FROM recur.doctor() WHERE severity = 'error' LIMIT 1",
        &[],
    );
    assert!(
        finding.contains("at site \"production\", and this is "),
        "{finding}"
    );
    assert!(finding.ends_with("at site \"staging\"."), "{finding}");
    let before = clone.count("recur.dispatches");
    cluster.configure("recur.site = 'production'");
    cluster.reload();
    eventually("the original fires", || {
        clone.count("recur.dispatches") > before
    });
    // So does it after a restart.
    drop(clone);
    cluster.restart(Shutdown::Kill);
    let mut session = cluster.session("app");
    let before = session.count("recur.dispatches");
    eventually("it fires again", || {
        session.count("recur.dispatches") > before
    });
}

#[test]
fn only_admins_and_the_owner_of_the_database_arm_a_copy() {
    let cluster = Cluster::preloaded("");
    let mut superuser = cluster.session("postgres");
    for role in ["dba", "admin", "author", "consumer"] {
        superuser.batch(&format!("CREATE ROLE {role} LOGIN"));
    }
    superuser.batch("CREATE DATABASE app OWNER dba");
    let mut dba = cluster.session_as("dba", "app");
    dba.batch(
        "CREATE EXTENSION pg_recur;
         SELECT recur.grant_access(level, level::text) FROM unnest('{admin,author,consumer}'::name[]) AS level",
    );
    assert_eq!(dba.count("recur_internal.home"), 0);
    let mut author = cluster.session_as("author", "app");
    author.batch("SELECT recur.create('every second', '* * * * * *', 'p', 'a')");
    assert_eq!(dba.count("recur_internal.home"), 1);
    eventually("it fires", || author.count("recur.dispatches") > 0);
    // Rows of two places: that of here does not count.
    dba.batch("INSERT INTO recur_internal.home (cluster, database, site) VALUES (1, 1, 'forged')");
    assert_eq!(superuser_error(&cluster), "55000");
    for role in ["author", "consumer"] {
        let mut session = cluster.session_as(role, "app");
        for statement in [
            "SELECT recur.arm()",
            "SELECT recur.expect_move('1 day')",
            "SELECT recur_internal.settle()",
            "INSERT INTO recur_internal.home (cluster, database, site) VALUES (1, 1, '')",
            "DELETE FROM recur_internal.home",
        ] {
            assert_eq!(session.error(statement).0, "42501", "{role}: {statement}");
        }
    }
    assert_eq!(dba.error("DELETE FROM recur_internal.home").0, "42501");
    cluster
        .session_as("admin", "app")
        .batch("SELECT recur.arm()");
    let before = author.count("recur.dispatches");
    eventually("it fires", || author.count("recur.dispatches") > before);
    // However many rows there are.
    dba.batch(
        "INSERT INTO recur_internal.home (cluster, database, site)
         SELECT 1, n, '' FROM generate_series(1, 10000) AS n",
    );
    assert_eq!(superuser_error(&cluster), "55000");
    dba.batch("SELECT recur.arm()");
    assert_eq!(dba.count("recur_internal.home"), 1);
}

fn superuser_error(cluster: &Cluster) -> String {
    cluster.session("app").error("SELECT recur.tick()").0
}

#[test]
fn the_first_writer_settles_and_a_rollback_leaves_nothing() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    let mut other = cluster.session("app");
    session.batch("BEGIN; SELECT recur.enqueue('p', 'a'); ROLLBACK");
    assert_eq!(session.count("recur_internal.home"), 0);
    assert_eq!(session.count("recur.claim(1)"), 0);
    // Two sessions are first. Their role has its row as an owner already, for which the second one would wait.
    session.batch("SELECT recur.grant_access('postgres', 'author')");
    session.batch("BEGIN; SELECT recur.create('one', '1h', 'p', 'a')");
    other.batch("SELECT recur.create('two', '1h', 'p', 'a')");
    session.batch("COMMIT");
    eventually("both fire", || session.count("recur.dispatches") == 2);
    assert_eq!(session.count("recur.claim(10)"), 2);
}

#[test]
fn test_databases_need_no_home() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(FILL);
    assert_eq!(session.count("recur_internal.home"), 0);
    // A copy by template is a test database, too: a base of many tests.
    let (name, copy) = (cluster.name_of("app"), cluster.name_of("copied"));
    drop(session);
    let mut superuser = cluster.session("postgres");
    superuser.batch(&format!("CREATE DATABASE {copy} TEMPLATE {name}"));
    let mut copied = cluster.session("copied");
    copied.batch("SELECT recur.set_clock(recur.clock() + interval '1 day'); SELECT recur.tick()");
    assert_eq!(copied.count("recur.claim(10)"), 2);
    drop(copied);
    superuser.batch(&format!("DROP DATABASE {copy}"));
    // A restored copy is none.
    let dump = cluster.dump("app");
    let mut ordinary = restored(&cluster, "ordinary", &dump);
    assert_eq!(ordinary.error("SELECT recur.tick()").0, "55000");
    assert_eq!(ordinary.count("recur.claim(10)"), 0);
    // Nor do dispatches of another place become harmless by being restored into a test database.
    let mut live = cluster.session("app");
    live.batch(
        "DELETE FROM recur_internal.test_clock; INSERT INTO recur_internal.home VALUES (1, 1, '')",
    );
    let mut marked = cluster.database("marked");
    let dump = cluster
        .dump("app")
        .replace("CREATE EXTENSION", "-- CREATE EXTENSION");
    cluster.run_script("marked", &dump);
    assert_eq!(marked.error("SELECT recur.tick()").0, "55000");
    assert_eq!(marked.count("recur.claim(10)"), 0);
    marked.batch("SELECT recur.arm()");
    assert_eq!(marked.count("recur.claim(10)"), 1);
}

/// pg_upgrade starts both servers in binary-upgrade mode. Whatever the configuration preloads, no worker may write.
#[test]
fn nothing_runs_in_binary_upgrade_mode() {
    let mut cluster = Cluster::preloaded("");
    original(&cluster);
    cluster.stop(Shutdown::Fast);
    let log = cluster.folder().join("upgrade.log");
    let pg_ctl = |arguments: &[&str]| {
        let mut pg_ctl = cluster.program("pg_ctl", "postgres");
        pg_ctl.arg("--pgdata").arg(cluster.data()).arg("--wait");
        pg_ctl.arg("--log").arg(&log).args(arguments);
        pg_ctl
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        assert!(pg_ctl.status().expect("pg_ctl").success(), "{arguments:?}");
    };
    pg_ctl(&["start", "--options=-b"]);
    let mut session = cluster.session("app");
    let before = session.count("recur.dispatches");
    assert_eq!(
        session.count("pg_stat_activity WHERE backend_type LIKE 'pg_recur%'"),
        0
    );
    drop(session);
    pg_ctl(&["stop"]);
    let said = fs::read_to_string(&log).expect("the log");
    assert!(!said.contains("pg_recur launcher"), "{said}");
    cluster.launch();
    let mut session = cluster.session("app");
    eventually("it fires again", || {
        session.count("recur.dispatches") > before
    });
}
