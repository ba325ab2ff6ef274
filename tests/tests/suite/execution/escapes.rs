//! Ways out of a run: to another role, into the next run, into the extension's tables. None of them works.

use super::{outcome, run};
use pg_recur_tests::{Cluster, Session, eventually};
use serde_json::{Value, json};
use uuid::Uuid;

/// A database with an attacker, who may run SQL, and a victim with a table of its own.
fn arena() -> (Cluster, Session, Session) {
    let cluster = Cluster::preloaded("");
    let mut admin = cluster.database("app");
    admin.batch(
        "CREATE ROLE victim LOGIN; CREATE ROLE attacker LOGIN;
         GRANT CREATE, USAGE ON SCHEMA public TO attacker, victim;
         SELECT recur.grant_access('victim', 'sql'), recur.grant_access('attacker', 'sql'),
                recur.grant_access('attacker', 'consumer');
         CREATE TABLE secrets (text text); ALTER TABLE secrets OWNER TO victim;
         INSERT INTO secrets VALUES ('secret');
         CREATE SCHEMA evil AUTHORIZATION attacker;",
    );
    let attacker = cluster.session_as("attacker", "app");
    (cluster, admin, attacker)
}

/// Who the process is, as seen from inside.
const WHO: &str = "SELECT session_user || ' ' || current_user AS who";

#[test]
fn a_run_becomes_no_other_role() {
    let (_cluster, mut admin, mut attacker) = arena();
    for command in [
        "RESET ROLE; SELECT * FROM secrets",
        "RESET SESSION AUTHORIZATION; SELECT * FROM secrets",
        "SET SESSION AUTHORIZATION postgres",
        "SET SESSION AUTHORIZATION victim",
        "SET ROLE postgres",
        "SET ROLE recur_engine",
        "SET ROLE victim",
        "SET LOCAL ROLE recur_engine; TABLE recur_internal.owners",
        "SELECT set_config('role', 'recur_engine', false)",
        "SELECT set_config('session_authorization', 'postgres', false)",
        "DO $$ BEGIN EXECUTE 'SET SESSION AUTHORIZATION DEFAULT'; EXECUTE 'SET ROLE postgres'; END $$",
        "TABLE recur_internal.live_dispatches",
        "UPDATE recur_internal.live_dispatches SET status = 'pending'",
        "DELETE FROM recur_internal.armed_owners",
        "INSERT INTO recur_internal.armed_owners SELECT 1, 10, 'attacker'",
        "LOAD '/tmp/evil.so'",
        "COPY (SELECT 1) TO PROGRAM 'id > /tmp/pwned'",
        "COPY secrets FROM PROGRAM 'id'",
        "COPY (SELECT 1) TO '/tmp/pwned'",
        "CREATE EVENT TRIGGER evil ON ddl_command_end EXECUTE FUNCTION evil.f()",
        "ALTER SYSTEM SET shared_preload_libraries = ''",
        "SET session_replication_role = replica",
        "SET log_min_messages = panic",
        "CREATE FUNCTION evil.f() RETURNS int LANGUAGE c AS 'MODULE_PATHNAME', 'nowhere'",
        "ALTER ROLE victim PASSWORD 'x'",
        "SELECT recur_internal.disarm_owners()",
        "SELECT recur.arm_sql('victim')",
        "SELECT recur.set_handler('x', 'evil.f(jsonb)', owner => 'victim')",
    ] {
        let (status, result, error) = run(&mut attacker, command, ", max_attempts => 1");
        assert_eq!(status, "failed", "{command}: {result} {error}");
        assert!(!error.contains("XX000"), "{command}: {error}");
    }
    let (_, result, _) = run(&mut attacker, WHO, "");
    assert_eq!(result["rows"], json!([{"who": "attacker attacker"}]));
    assert_eq!(admin.count("recur_internal.armed_owners"), 1);
}

#[test]
fn nothing_of_a_run_is_seen_by_the_next() {
    let (cluster, _admin, mut attacker) = arena();
    cluster.configure("recur.executors = 1");
    cluster.reload();
    let left = [
        (
            "SET search_path = evil, public",
            "SELECT current_setting('search_path') AS v",
        ),
        (
            "SET my.value = 'left'",
            "SELECT coalesce(current_setting('my.value', true), '') AS v",
        ),
        (
            "SET statement_timeout = '1h'",
            "SELECT current_setting('statement_timeout') AS v",
        ),
        (
            "SELECT set_config('work_mem', '99MB', false)",
            "SELECT current_setting('work_mem') AS v",
        ),
        (
            "CREATE TEMP TABLE left_behind (n int)",
            "SELECT to_regclass('pg_temp.left_behind')::text AS v",
        ),
        (
            "PREPARE p AS SELECT 1",
            "SELECT count(*)::text AS v FROM pg_prepared_statements",
        ),
        (
            "SELECT pg_advisory_lock(42)",
            "SELECT count(*)::text AS v FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = 42",
        ),
        (
            "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
            "SELECT count(*)::text AS v FROM pg_cursors WHERE name = 'c'",
        ),
        (
            "SET default_transaction_read_only = on",
            "SELECT current_setting('default_transaction_read_only') AS v",
        ),
        (
            "SET default_transaction_isolation = 'serializable'",
            "SELECT current_setting('transaction_isolation') AS v",
        ),
        (
            "CREATE TEMP SEQUENCE s; SELECT nextval('s')",
            "SELECT to_regclass('pg_temp.s')::text AS v",
        ),
    ];
    for (command, look) in left {
        let (_, before, _) = run(&mut attacker, look, "");
        let (status, _, error) = run(&mut attacker, command, ", max_attempts => 1");
        assert_eq!(
            (status.as_str(), error.as_str()),
            ("completed", ""),
            "{command}"
        );
        let (status, after, error) = run(&mut attacker, look, ", max_attempts => 1");
        assert_eq!(
            (status.as_str(), error.as_str()),
            ("completed", ""),
            "{look}"
        );
        assert_eq!(after["rows"], before["rows"], "{command}");
    }
}

#[test]
fn settings_of_the_role_do_not_stop_the_bookkeeping() {
    let (_cluster, mut admin, mut attacker) = arena();
    admin.batch(
        "ALTER ROLE attacker SET default_transaction_read_only = on;
         ALTER ROLE attacker SET default_transaction_isolation = 'serializable';
         ALTER ROLE attacker SET search_path = evil, pg_catalog;
         ALTER ROLE attacker SET row_security = off;
         ALTER ROLE attacker SET plan_cache_mode = force_custom_plan;
         ALTER ROLE attacker SET enable_indexscan = off;
         ALTER ROLE attacker SET DateStyle = 'German';
         ALTER ROLE attacker SET IntervalStyle = 'iso_8601';",
    );
    // Shadows of what the extension's queries use.
    attacker.batch(
        "CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
         CREATE FUNCTION evil.no(uuid, uuid) RETURNS boolean LANGUAGE plpgsql AS
            $$ BEGIN RAISE 'called as %', current_user; END $$;
         CREATE OPERATOR evil.= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = evil.no);",
    );
    let (status, result, error) = run(&mut attacker, WHO, "");
    assert_eq!((status.as_str(), error.as_str()), ("completed", ""));
    assert_eq!(result["rows"], json!([{"who": "attacker attacker"}]));
    let (status, _, error) = run(&mut attacker, "CREATE TABLE t ()", ", max_attempts => 1");
    assert_eq!(status, "failed");
    assert!(error.contains("read-only transaction"), "{error}");
}

#[test]
fn code_that_runs_later_runs_as_its_owner() {
    let (_cluster, mut admin, mut attacker) = arena();
    // A deferred trigger fires at the commit, after the bookkeeping; a function in an index, in VACUUM.
    attacker.batch(
        "CREATE TABLE evil.log (who text);
         CREATE FUNCTION evil.note() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO evil.log VALUES (current_user); RETURN NULL; END $$;
         CREATE TABLE evil.t (n int);
         CREATE CONSTRAINT TRIGGER late AFTER INSERT ON evil.t DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION evil.note();
         CREATE FUNCTION evil.indexed(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
            $$ BEGIN IF current_user <> 'attacker' THEN RAISE 'as %', current_user; END IF; RETURN $1; END $$;
         CREATE INDEX ON evil.t (evil.indexed(n));",
    );
    let (status, result, error) = run(&mut attacker, "INSERT INTO evil.t VALUES (1)", "");
    assert_eq!((status.as_str(), error.as_str()), ("completed", ""));
    assert_eq!(result["delivery"], "exactly once");
    let (status, _, error) = run(&mut attacker, "VACUUM (FULL, ANALYZE) evil.t", "");
    assert_eq!((status.as_str(), error.as_str()), ("completed", ""));
    let who: Vec<String> = admin.column("SELECT who FROM evil.log", &[]);
    assert_eq!(who, ["attacker"]);
    // A trigger that fails at the commit fails the run, and nothing of it stays.
    attacker.batch(
        "CREATE OR REPLACE FUNCTION evil.note() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE 'too late'; END $$;",
    );
    let (status, _, error) = run(
        &mut attacker,
        "INSERT INTO evil.t VALUES (2)",
        ", max_attempts => 1",
    );
    assert_eq!(status, "failed");
    assert!(error.starts_with("too late"), "{error}");
    assert_eq!(admin.count("evil.t"), 1);
}

#[test]
fn a_run_that_ends_its_own_dispatch_has_no_effect() {
    let (_cluster, mut admin, mut attacker) = arena();
    attacker.batch("CREATE TABLE evil.t (n int)");
    for call in [
        "recur.complete(id, attempt)",
        "recur.release(id, attempt)",
        "recur.fail(id, attempt, 'no')",
    ] {
        let command = format!(
            "INSERT INTO evil.t VALUES (1); SELECT {call} FROM recur.dispatches WHERE status = 'running'"
        );
        let (status, _, error) = run(&mut attacker, &command, ", max_attempts => 1");
        assert_eq!(status, "failed", "{call}");
        assert!(error.contains("was ended while it ran"), "{call}: {error}");
        assert_eq!(admin.count("evil.t"), 0, "{call}");
    }
}

#[test]
fn the_runs_of_others_are_out_of_reach() {
    let (cluster, _admin, mut attacker) = arena();
    let mut victim = cluster.session_as("victim", "app");
    let id: Uuid = victim.value("SELECT recur.enqueue_sql('SELECT pg_sleep(600)')", &[]);
    eventually("it runs", || {
        victim.count("recur.runs WHERE outcome = 'running'") == 1
    });
    for command in [
        format!("SELECT recur.cancel('{id}')"),
        format!("SELECT recur.complete('{id}', 1)"),
        "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = 'victim'".to_owned(),
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'victim'"
            .to_owned(),
    ] {
        let (status, result, error) = run(&mut attacker, &command, ", max_attempts => 1");
        assert_eq!(status, "failed", "{command}: {result} {error}");
    }
    let (_, result, _) = run(
        &mut attacker,
        "SELECT count(*) FROM recur.runs WHERE owner = 'victim'",
        "",
    );
    assert_eq!(result["rows"], json!([{"count": 0}]));
    assert_eq!(victim.count("recur.runs WHERE outcome = 'running'"), 1);
    victim.execute("SELECT recur.cancel($1)", &[&id]);
    assert_eq!(outcome(&mut victim, id).0, "cancelled");
}

#[test]
fn what_is_kept_of_a_run_is_bounded() {
    let (_cluster, _admin, mut attacker) = arena();
    let (status, result, _) = run(
        &mut attacker,
        "SELECT repeat('x', 100000000) AS big, n FROM generate_series(1, 3) AS n",
        "",
    );
    assert_eq!(status, "completed");
    assert_eq!(result["rows"][2], json!({"big": null, "n": 3}));
    assert_eq!(
        (&result["row_count"], &result["rows_are_cut"]),
        (&json!(3), &json!(true))
    );
    let (_, result, _) = run(
        &mut attacker,
        "DO $$ BEGIN FOR n IN 1 .. 1000000 LOOP RAISE NOTICE '%', n; END LOOP; END $$",
        "",
    );
    let kept = result["messages"].as_array().map_or(0, Vec::len);
    assert_eq!((kept, &result["messages_omitted"]), (100, &json!(999_900)));
    let (_, result, _) = run(
        &mut attacker,
        "SELECT n FROM generate_series(1, 100000) AS n",
        "",
    );
    assert_eq!(result["rows"].as_array().map_or(0, Vec::len), 10);
    assert_eq!(result["row_count"], 100_000);
    let statements = "SELECT 1;".repeat(300);
    let (_, result, _) = run(&mut attacker, &statements, "");
    assert_eq!(result["commands"].as_array().map_or(0, Vec::len), 100);
    assert_eq!(result["command_count"], 300);
    let huge = format!("SELECT 1 -- {}", "x".repeat(10_000_000));
    let (code, message, _) = attacker.error_with("SELECT recur.enqueue_sql($1)", &[&huge]);
    assert_eq!(code, "22023", "{message}");
    assert!(message.contains("command"), "{message}");
    let none: Value = attacker.value(
        "SELECT to_jsonb(count(*)) FROM recur.dispatches WHERE status = 'failed'",
        &[],
    );
    assert_eq!(none, json!(0));
}

#[test]
fn an_answer_outlives_its_transaction() {
    let (_cluster, _admin, mut attacker) = arena();
    attacker.batch(
        "CREATE FUNCTION evil.reads_only(payload jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN
            PERFORM set_config('transaction_read_only', 'on', true);
            RETURN jsonb_build_object('a', array_to_json(array(SELECT md5(g::text) FROM generate_series(1, 3000) g)));
         END $$;
         SELECT recur.set_handler('read', 'evil.reads_only(jsonb)');",
    );
    let id: Uuid = attacker.value(
        "SELECT recur.enqueue('app', 'read', max_attempts => 1)",
        &[],
    );
    let (status, _, error) = outcome(&mut attacker, id);
    assert_eq!(status, "failed");
    assert!(error.contains("must not end its transaction"), "{error}");
}

#[test]
fn a_role_that_was_set_is_gone_with_its_run() {
    let (cluster, mut admin, mut attacker) = arena();
    admin.batch("CREATE ROLE low; GRANT low TO attacker");
    cluster.configure("recur.executors = 1");
    cluster.reload();
    assert_eq!(run(&mut attacker, "SET ROLE low", "").0, "completed");
    let (_, result, _) = run(&mut attacker, WHO, "");
    assert_eq!(result["rows"], json!([{"who": "attacker attacker"}]));
}

#[test]
fn a_result_never_fails_its_run() {
    let (_cluster, mut admin, mut attacker) = arena();
    attacker.batch("CREATE TABLE evil.t (n int)");
    for json in [r#"'"\u0000"'"#, "'1e999999'", r#"'"\ud800"'"#] {
        let command = format!("INSERT INTO evil.t VALUES (1) RETURNING {json}::json AS j");
        let (status, result, error) = run(&mut attacker, &command, ", max_attempts => 1");
        assert_eq!(
            (status.as_str(), error.as_str()),
            ("completed", ""),
            "{json}"
        );
        assert_eq!(
            (&result["rows"], &result["rows_are_cut"]),
            (&json!([]), &json!(true))
        );
    }
    assert_eq!(admin.count("evil.t"), 3);
}

#[test]
fn what_was_stored_unchecked_is_refused_when_it_runs() {
    let (_cluster, mut admin, mut attacker) = arena();
    for command in ["BEGIN", "COPY secrets FROM STDIN", "SELECT 1; COMMIT"] {
        // In one transaction: nothing can run before it is another command.
        admin.batch("BEGIN; SET SESSION AUTHORIZATION attacker");
        let id: Uuid = admin.value(
            "SELECT recur.enqueue_sql('SELECT 1', max_attempts => 1)",
            &[],
        );
        admin.batch("RESET SESSION AUTHORIZATION");
        admin.execute(
            "UPDATE recur_internal.live_dispatches SET payload = jsonb_build_object('command', $2::text) WHERE id = $1",
            &[&id, &command],
        );
        admin.batch("COMMIT");
        let (status, _, error) = outcome(&mut attacker, id);
        assert_eq!(status, "failed", "{command}");
        assert!(error.contains("must not control transactions"), "{error}");
    }
    assert_eq!(run(&mut attacker, WHO, "").0, "completed");
}
