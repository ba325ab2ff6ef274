//! Executors that end in the middle of a run, and servers that crash.

use super::{outcome, run};
use pg_recur_tests::workers::session_after_kill;
use pg_recur_tests::{Cluster, Session, Shutdown, eventually, eventually_some};
use uuid::Uuid;

/// The process that runs a command which sleeps.
fn sleeper(session: &mut Session) -> i32 {
    eventually_some("a command sleeps", || {
        let pids: Vec<i32> = session.column(
            "SELECT pid FROM pg_stat_activity
              WHERE backend_type = 'pg_recur executor' AND wait_event = 'PgSleep'",
            &[],
        );
        pids.first().copied()
    })
}

fn kill(pid: i32) {
    std::process::Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status()
        .unwrap();
}

#[test]
fn a_killed_executor_leaves_effect_and_completion_or_neither() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    session.batch("CREATE TABLE effects (id uuid)");
    for round in 0..10 {
        // The kill hits before, in or after the commit.
        let sleep = f64::from(round % 5) * 0.01;
        let command = format!(
            "INSERT INTO effects SELECT id FROM recur.dispatches WHERE status = 'running'; SELECT pg_sleep({sleep})"
        );
        let id: Uuid = session.value(
            "SELECT recur.enqueue_sql($1, max_attempts => 5)",
            &[&command],
        );
        let pid = eventually_some("an executor runs, or has run", || {
            let pids: Vec<i32> = session.column(
                "SELECT pid FROM recur.workers WHERE kind = 'executor' AND pid IS NOT NULL",
                &[],
            );
            pids.first().copied()
        });
        kill(pid);
        session = session_after_kill(&cluster, "app", pid);
        let (status, _, error) = outcome(&mut session, id);
        assert_eq!(status, "completed", "{error}");
        let effects: i64 = session.value("SELECT count(*) FROM effects WHERE id = $1", &[&id]);
        assert_eq!(effects, 1, "round {round}");
    }
}

#[test]
fn a_terminated_executor_is_noticed_at_once() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    let id: Uuid = session.value(
        "SELECT recur.enqueue_sql('SELECT pg_sleep(CASE attempt WHEN 1 THEN 600 ELSE 0 END)
                                     FROM recur.dispatches WHERE status = ''running''')",
        &[],
    );
    let pid = sleeper(&mut session);
    session.execute("SELECT pg_terminate_backend($1)", &[&pid]);
    let (status, _, error) = outcome(&mut session, id);
    assert_eq!(status, "completed", "{error}");
    let attempt: i32 = session.value("SELECT attempt FROM recur.dispatches WHERE id = $1", &[&id]);
    assert_eq!(attempt, 2);
}

#[test]
fn after_a_crash_runs_are_released_at_start_up() {
    let mut cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    let id: Uuid = session.value(
        "SELECT recur.enqueue_sql('SELECT pg_sleep(600)', max_attempts => 1)",
        &[],
    );
    sleeper(&mut session);
    cluster.restart(Shutdown::Immediate);
    let mut session = cluster.session("app");
    let (status, _, error) = outcome(&mut session, id);
    assert_eq!(status, "failed");
    assert!(error.contains("lease"), "{error}");
}

#[test]
fn a_database_is_dropped_while_something_runs() {
    let cluster = Cluster::preloaded("");
    let mut other = cluster.database("app");
    let mut session = cluster.database("doomed");
    let _: Uuid = session.value("SELECT recur.enqueue_sql('SELECT pg_sleep(600)')", &[]);
    sleeper(&mut session);
    drop(session);
    other.batch("DROP DATABASE doomed");
    let (status, ..) = run(&mut other, "SELECT 1", "");
    assert_eq!(status, "completed");
}

#[test]
fn an_interrupted_run_does_not_count() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    let id: Uuid = session.value(
        "SELECT recur.enqueue_sql('SELECT pg_sleep(CASE attempt WHEN 1 THEN 600 ELSE 0 END)
                                     FROM recur.dispatches WHERE status = ''running''', max_attempts => 1)",
        &[],
    );
    sleeper(&mut session);
    let mut postgres = cluster.session("postgres");
    drop(session);
    postgres.batch("ALTER DATABASE app RENAME TO other");
    let mut session = cluster.session("other");
    eventually("it is over", || {
        session.count("recur.dispatches WHERE finished_at IS NOT NULL") == 1
    });
    let (status, _, error) = outcome(&mut session, id);
    assert_eq!(status, "completed", "{error}");
}

#[test]
fn what_an_executor_runs_is_not_given_up() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    let id: Uuid = session.value("SELECT recur.enqueue_sql('SELECT pg_sleep(600)')", &[]);
    sleeper(&mut session);
    let given_up: i64 = session.value("SELECT recur.recover('0 seconds')", &[]);
    assert_eq!(given_up, 0);
    session.execute("SELECT recur.cancel($1)", &[&id]);
    assert_eq!(outcome(&mut session, id).0, "cancelled");
}

#[test]
fn a_command_that_commits_by_itself_is_tried_again_as_its_policy_says() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    session.batch(
        "CREATE TABLE t AS SELECT n FROM generate_series(1, 200000) AS n; DELETE FROM t;
         ALTER ROLE postgres SET vacuum_cost_delay = 100; ALTER ROLE postgres SET vacuum_cost_limit = 1",
    );
    let once = "SELECT recur.enqueue_sql('VACUUM t', max_attempts => 1)";
    let again = "SELECT recur.enqueue_sql('VACUUM t', max_attempts => 2)";
    for (statement, expected) in [(once, "failed"), (again, "completed")] {
        let id: Uuid = session.value(statement, &[]);
        let pid: i32 = eventually_some("it vacuums", || {
            let pids: Vec<i32> = session.column(
                "SELECT pid FROM pg_stat_activity
                  WHERE backend_type = 'pg_recur executor' AND wait_event = 'VacuumDelay'",
                &[],
            );
            pids.first().copied()
        });
        session.batch("ALTER ROLE postgres RESET vacuum_cost_delay");
        kill(pid);
        session = session_after_kill(&cluster, "app", pid);
        let (status, result, error) = outcome(&mut session, id);
        assert_eq!(status, expected, "{error}");
        if status == "completed" {
            assert_eq!(result["delivery"], "at least once");
        }
        session.batch(
            "ALTER ROLE postgres SET vacuum_cost_delay = 100;
             INSERT INTO t SELECT generate_series(1, 200000); DELETE FROM t",
        );
    }
}

#[test]
fn what_has_committed_something_is_not_given_back() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    session.batch(
        "CREATE TABLE seen (n int);
         CREATE PROCEDURE steps() LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO seen VALUES (1); COMMIT; PERFORM pg_sleep(600); END $$",
    );
    let id: Uuid = session.value(
        "SELECT recur.enqueue_sql('CALL steps()', max_attempts => 1)",
        &[],
    );
    sleeper(&mut session);
    let mut postgres = cluster.session("postgres");
    drop(session);
    postgres.batch("ALTER DATABASE app RENAME TO other");
    let mut session = cluster.session("other");
    let (status, ..) = outcome(&mut session, id);
    assert_eq!(status, "failed");
    assert_eq!(session.count("seen"), 1);
}
