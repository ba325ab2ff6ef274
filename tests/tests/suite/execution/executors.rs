//! Executors: how many there are, and whose turn it is.

use super::{outcome, run};
use pg_recur_tests::{Cluster, eventually, eventually_some};
use uuid::Uuid;

const EXECUTORS: &str = "recur.workers WHERE kind = 'executor'";

#[test]
fn there_are_none_without_something_to_run() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    session.batch("SELECT recur.create('a', 'every 1 second', 'app', 'a')");
    eventually("it fires", || session.count("recur.dispatches") > 0);
    assert_eq!(session.count(EXECUTORS), 0);
    run(&mut session, "SELECT 1", "");
    assert_eq!(session.count(EXECUTORS), 1);
}

#[test]
fn no_more_run_at_once_than_allowed() {
    let cluster = Cluster::preloaded("max_worker_processes = 30\nrecur.executors = 3");
    let mut session = cluster.database("app");
    // They run until the test lets them go on.
    session.batch(
        "SELECT pg_advisory_lock(1);
         SELECT recur.enqueue_sql('SELECT pg_advisory_xact_lock_shared(1)') FROM generate_series(1, 12)",
    );
    let running = "recur.runs WHERE outcome = 'running'";
    eventually("three run at once", || session.count(running) == 3);
    session.batch("SELECT pg_advisory_unlock(1)");
    eventually("all have run", || {
        assert!(session.count(running) <= 3);
        assert!(session.count(EXECUTORS) <= 3);
        session.count("recur.runs WHERE outcome = 'completed'") == 12
    });
}

#[test]
fn switched_off_nothing_runs_and_the_doctor_says_so() {
    let cluster = Cluster::preloaded("recur.executors = 0");
    let mut session = cluster.database("app");
    let id: Uuid = session.value("SELECT recur.enqueue_sql('SELECT 1')", &[]);
    session.batch(
        "UPDATE recur_internal.live_dispatches SET available_at = now() - interval '2 minutes',
                created_at = now() - interval '2 minutes'",
    );
    let found: Vec<String> = session.texts("SELECT finding || remedy FROM recur.doctor()", &[]);
    let said = found.iter().any(|one| {
        one.contains("1 dispatches wait for an executor") && one.contains("recur.executors is 0")
    });
    assert!(said, "{found:?}");
    cluster.configure("recur.executors = 2");
    cluster.reload();
    assert_eq!(outcome(&mut session, id).0, "completed");
}

#[test]
fn every_owner_gets_a_turn() {
    let cluster = Cluster::preloaded("recur.executors = 2");
    let mut session = cluster.database("app");
    session.batch(
        "DO $$ BEGIN FOR n IN 1 .. 10 LOOP
            EXECUTE format('CREATE ROLE owner%s LOGIN', n);
            PERFORM recur.grant_access(format('owner%s', n), 'sql');
         END LOOP; END $$;
         CREATE TABLE seen (who name DEFAULT current_user); GRANT INSERT ON seen TO PUBLIC;
         -- The first owner has enough for a long time.
         SET SESSION AUTHORIZATION owner1;
         SELECT recur.enqueue_sql('SELECT pg_sleep(0.1)') FROM generate_series(1, 2000);",
    );
    for number in 2..=10 {
        session.batch(&format!(
            "RESET SESSION AUTHORIZATION; SET SESSION AUTHORIZATION owner{number};
             SELECT recur.enqueue_sql('INSERT INTO seen DEFAULT VALUES')"
        ));
    }
    session.batch("RESET SESSION AUTHORIZATION");
    eventually("all others had their turn", || session.count("seen") == 9);
    assert!(session.count("recur.runs WHERE owner = 'owner1' AND outcome = 'completed'") < 2000);
}

#[test]
fn the_activity_shows_what_runs_for_which_action() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    session.batch("SELECT recur.create_sql('nightly', '@yearly', 'SELECT pg_sleep(600)')");
    let id: Uuid = session.value("SELECT recur.trigger('nightly')", &[]);
    let shown: String = eventually_some("it runs", || {
        let rows: Vec<String> = session.column(
            "SELECT application_name || '/' || query FROM pg_stat_activity
              WHERE backend_type = 'pg_recur executor' AND wait_event = 'PgSleep'",
            &[],
        );
        rows.first().cloned()
    });
    assert_eq!(shown, "pg_recur: nightly/SELECT pg_sleep(600)");
    session.execute("SELECT recur.cancel($1)", &[&id]);
    assert_eq!(outcome(&mut session, id).0, "cancelled");
}

#[test]
fn code_that_ignores_cancellation_is_reported() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    let _: Uuid = session.value(
        "SELECT recur.enqueue_sql('DO $d$ BEGIN LOOP BEGIN PERFORM pg_sleep(1); EXCEPTION WHEN query_canceled THEN END;
                                   END LOOP; END $d$', timeout => '10 ms')",
        &[],
    );
    eventually("the doctor has noticed", || {
        let found: Vec<String> = session.texts("SELECT finding FROM recur.doctor()", &[]);
        found.iter().any(|one| one.contains("should have stopped"))
    });
}

#[test]
fn an_idle_executor_makes_room_for_another_owner() {
    // Two slots are left beside the dispatcher and what is kept for others.
    let cluster = Cluster::preloaded("max_worker_processes = 8");
    let mut session = cluster.database("app");
    for owner in ["one", "two", "three", "four"] {
        session.batch(&format!(
            "CREATE ROLE {owner} LOGIN; SELECT recur.grant_access('{owner}', 'sql');
             SET SESSION AUTHORIZATION {owner};"
        ));
        let (status, ..) = run(&mut session, "SELECT 1", "");
        assert_eq!(status, "completed");
        session.batch("RESET SESSION AUTHORIZATION");
        assert!(session.count(EXECUTORS) <= 2);
    }
    // An executor leaves by itself after a minute only.
    let waited: f64 = session.value(
        "SELECT extract(epoch FROM max(began - d.created_at))::float8
           FROM recur.runs AS r JOIN recur.dispatches AS d ON d.id = r.dispatch_id",
        &[],
    );
    assert!(waited < 50.0, "{waited}");
}

#[test]
fn databases_share_the_slots() {
    let cluster = Cluster::preloaded("max_worker_processes = 8\nrecur.executors = 1");
    let mut busy = cluster.database("busy");
    let mut other = cluster.database("other");
    busy.batch("SELECT recur.enqueue_sql('SELECT pg_sleep(0.2)') FROM generate_series(1, 1000)");
    eventually("it is busy", || busy.count("recur.runs") > 2);
    for _ in 0..3 {
        let (status, ..) = run(&mut other, "SELECT 1", "");
        assert_eq!(status, "completed");
    }
    assert!(busy.count("recur.runs WHERE outcome = 'completed'") < 1000);
}

#[test]
fn any_result_is_shown() {
    let cluster = Cluster::preloaded("recur.executors = 0");
    let mut session = cluster.database("app");
    for result in [
        r#"{"duration_ms": "abc", "row_count": "x", "commands": [5, {"rows": "y"}, {"rows": 1e300}]}"#,
        r#"{"duration_ms": 1e300, "row_count": -1, "commands": {"a": 1}, "messages": 5}"#,
        "[]",
        "5",
    ] {
        session.batch("SELECT recur.enqueue_sql('SELECT 1')");
        session.execute(
            "SELECT recur.complete(id, attempt, $1::text::jsonb) FROM recur.claim(1, '{sql}')",
            &[&result],
        );
    }
    assert_eq!(
        session
            .count("(SELECT DISTINCT duration, rows, message, dispatch_id FROM recur.runs) AS r"),
        4
    );
}
