//! Commands: what is run, and what a run leaves.

use super::{outcome, run};
use pg_recur_tests::{Cluster, eventually};
use serde_json::json;
use uuid::Uuid;

#[test]
fn a_command_is_run_and_leaves_what_it_did() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    session
        .batch("CREATE TABLE seen (at timestamptz DEFAULT now(), who name DEFAULT current_user)");
    let (status, result, error) = run(&mut session, "INSERT INTO seen DEFAULT VALUES", "");
    assert_eq!((status.as_str(), error.as_str()), ("completed", ""));
    assert_eq!(result["commands"], json!([{"tag": "INSERT", "rows": 1}]));
    assert_eq!(result["delivery"], "exactly once");
    assert_eq!(session.count("seen"), 1);
    let (_, result, _) = run(
        &mut session,
        "UPDATE seen SET at = now(); SELECT 1.50::numeric AS n, 'a' AS n, who FROM seen",
        "",
    );
    assert_eq!(
        result["commands"],
        json!([{"tag": "UPDATE", "rows": 1}, {"tag": "SELECT", "rows": 1}])
    );
    assert_eq!(result["rows"][0]["n_2"], "a");
    assert_eq!(result["row_count"], 1);
    let text: String = session.value(
        "SELECT result::text FROM recur.dispatches WHERE result ? 'rows'",
        &[],
    );
    assert!(text.contains("1.50"), "{text}");
}

#[test]
fn a_schedule_runs_in_the_database() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    session.batch("CREATE TABLE seen (at timestamptz DEFAULT now())");
    let action: Uuid = session.value(
        "SELECT recur.create_sql('tick', 'every 1 second', 'INSERT INTO seen DEFAULT VALUES')",
        &[],
    );
    eventually("it has run three times", || session.count("seen") >= 3);
    session.execute("SELECT recur.pause($1::uuid)", &[&action]);
    let runs: i64 = session.value(
        "SELECT count(*) FROM recur.runs WHERE action = 'tick' AND outcome = 'completed' AND rows = 1",
        &[],
    );
    assert!(runs >= 2, "{runs}");
}

#[test]
fn a_failure_says_where_and_why() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    let (status, result, error) = run(
        &mut session,
        "SELECT 1;\nSELECT 1 / (SELECT 0)",
        ", max_attempts => 1",
    );
    assert_eq!(status, "failed");
    assert_eq!(error, "division by zero (SQLSTATE 22012)");
    assert_eq!(result["error"]["sqlstate"], "22012");
    let (_, result, error) = run(&mut session, "SELECT * FROM nowhere", ", max_attempts => 1");
    assert_eq!(result["error"]["position"], 15);
    assert!(error.contains("POSITION: 15"), "{error}");
    let (_, result, _) = run(
        &mut session,
        "DO $$ BEGIN RAISE NOTICE 'one'; RAISE WARNING 'two'; RAISE 'three' USING HINT = 'h', DETAIL = 'd'; END $$",
        ", max_attempts => 1",
    );
    assert_eq!(
        result["messages"],
        json!([{"severity": "NOTICE", "text": "one"}, {"severity": "WARNING", "text": "two"}])
    );
    let error = &result["error"];
    assert_eq!(
        [&error["message"], &error["detail"], &error["hint"]],
        [&json!("three"), &json!("d"), &json!("h")]
    );
    assert!(error["context"].as_str().unwrap().contains("PL/pgSQL"));
}

#[test]
fn commands_that_need_no_transaction_run_alone() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    session.batch(
        "CREATE TABLE seen (n int);
         CREATE PROCEDURE steps() LANGUAGE plpgsql AS $$
         BEGIN
            INSERT INTO seen VALUES (1);
            COMMIT;
            INSERT INTO seen VALUES (2);
         END $$",
    );
    for command in [
        "VACUUM (ANALYZE) seen",
        "CREATE INDEX CONCURRENTLY seen_n ON seen (n)",
        "REINDEX INDEX CONCURRENTLY seen_n",
        "CALL steps()",
        "ALTER SYSTEM SET work_mem = '5MB'",
    ] {
        let (status, result, error) = run(&mut session, command, ", max_attempts => 1");
        assert_eq!(
            (status.as_str(), error.as_str()),
            ("completed", ""),
            "{command}"
        );
        assert_eq!(result["delivery"], "at least once", "{command}");
    }
    assert_eq!(session.count("seen"), 2);
    let (status, _, error) = run(
        &mut session,
        "SELECT 1; CALL steps()",
        ", max_attempts => 1",
    );
    assert_eq!(status, "failed", "{error}");
    assert_eq!(session.count("seen"), 2);
}

#[test]
fn a_timeout_stops_a_run_and_says_so() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    let (status, _, error) = run(
        &mut session,
        "SELECT pg_sleep(60)",
        ", max_attempts => 1, timeout => '200 ms'",
    );
    assert_eq!(status, "failed");
    assert!(error.starts_with("timed out after 0."), "{error}");
}

#[test]
fn a_running_command_is_cancelled() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    let id: Uuid = session.value("SELECT recur.enqueue_sql('SELECT pg_sleep(600)')", &[]);
    eventually("it runs", || {
        session.count("pg_stat_activity WHERE query = 'SELECT pg_sleep(600)' AND state = 'active'")
            == 1
    });
    session.execute("SELECT recur.cancel($1, 'enough')", &[&id]);
    let (status, _, error) = outcome(&mut session, id);
    assert_eq!((status.as_str(), error.as_str()), ("cancelled", "enough"));
}

#[test]
fn what_can_not_run_is_refused_when_it_is_stored() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for (command, problem, detail) in [
        ("", "must not be empty", ""),
        ("  -- nothing\n", "must not be empty", ""),
        (
            "SELECT 1;\nSELEC 2",
            "syntax error",
            "Line 2, character 1: SELEC 2",
        ),
        (
            "SELECT 1;\n COMMIT",
            "must not control transactions",
            "Line 2, character 2:  COMMIT",
        ),
        ("BEGIN", "must not control transactions", "Line 1"),
        (
            "COPY t FROM STDIN",
            "must not copy from or to the client",
            "Line 1",
        ),
        (
            "COPY t TO STDOUT",
            "must not copy from or to the client",
            "Line 1",
        ),
        ("LISTEN x", "must not listen", "Line 1"),
        ("SELECT 1; VACUUM", "must run alone", "character 11"),
        (
            "CREATE INDEX CONCURRENTLY ON t (a); SELECT 1",
            "must run alone",
            "Line 1",
        ),
    ] {
        let error = session
            .0
            .query("SELECT recur.create_sql('a', '@daily', $1)", &[&command])
            .expect_err(command);
        let error = error.as_db_error().expect("an error of the server");
        let (code, message) = (error.code().code(), error.message());
        assert!(message.contains(problem), "{command:?}: {message}");
        assert!(["22023", "42601"].contains(&code), "{code} {message}");
        assert!(error.hint().is_some(), "{message}");
        let place = error.detail().unwrap_or_default();
        assert!(place.contains(detail), "{command:?}: {place}");
    }
    assert_eq!(session.count("recur.recurring_actions"), 0);
}

#[test]
fn as_many_rows_are_kept_as_the_setting_says() {
    let cluster = Cluster::preloaded("recur.result_rows = 2");
    let mut session = cluster.database("app");
    for kept in [2, 0] {
        let command = "SELECT n FROM generate_series(1, 5) AS n";
        let (_, result, _) = run(&mut session, command, "");
        assert_eq!(result["rows"].as_array().map_or(0, Vec::len), kept);
        assert_eq!(result["row_count"], 5);
        cluster.configure("recur.result_rows = 0");
        cluster.reload();
        eventually("the setting holds", || {
            session.value::<String>("SHOW recur.result_rows", &[]) == "0"
        });
    }
}
