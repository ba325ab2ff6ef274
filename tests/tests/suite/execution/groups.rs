//! Calls of handlers that share a transaction.

use super::outcome;
use pg_recur_tests::{Cluster, Session, eventually, eventually_some};
use uuid::Uuid;

/// Notes each call with its transaction, then does what the payload says.
const HANDLER: &str = "
CREATE TABLE called (n int, xid text DEFAULT pg_current_xact_id()::text, trace text);
GRANT ALL ON called TO PUBLIC;
CREATE FUNCTION handle(payload jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    trace text;
BEGIN
    IF payload ? 'trace' THEN
        EXECUTE payload ->> 'trace' INTO trace;
    END IF;
    INSERT INTO called (n, trace) VALUES ((payload ->> 'n')::int, trace);
    IF payload ? 'do' THEN
        EXECUTE payload ->> 'do';
    END IF;
    RETURN payload -> 'n';
END $$;
SELECT recur.set_handler('a', 'handle(jsonb)');";

/// Enough calls for the next ones to share a transaction.
fn warm_up(session: &mut Session) {
    session.batch("SELECT recur.enqueue('app', 'a', '{\"n\": 0}') FROM generate_series(1, 100)");
    eventually("all were called", || {
        session.count("called WHERE n = 0") == 100
    });
    idle(session);
    session.batch("TRUNCATE called");
}

fn idle(session: &mut Session) {
    eventually("all is over", || {
        session.count("recur_internal.live_dispatches") == 0
    });
}

fn started() -> (Cluster, Session) {
    let cluster = Cluster::preloaded("recur.executors = 1");
    let mut session = cluster.database("app");
    session.batch(HANDLER);
    warm_up(&mut session);
    (cluster, session)
}

/// Enqueues calls with this payload beside the number, in one transaction.
fn enqueue(session: &mut Session, from: i32, to: i32, also: &str, arguments: &str) {
    session.execute(
        &format!(
            "SELECT count(recur.enqueue('app', 'a', jsonb_build_object('n', n) || $1::text::jsonb{arguments}))
               FROM generate_series({from}, {to}) AS n"
        ),
        &[&also],
    );
}

fn transactions(session: &mut Session, condition: &str) -> i64 {
    session.count(&format!(
        "(SELECT DISTINCT xid FROM called WHERE {condition}) AS x"
    ))
}

#[test]
fn fast_calls_share_transactions() {
    let (_cluster, mut session) = started();
    enqueue(&mut session, 1, 400, "{}", "");
    idle(&mut session);
    assert_eq!(session.count("called"), 400);
    let shared = transactions(&mut session, "true");
    assert!(shared < 100, "{shared} transactions");
    let wrong: i64 = session.count(
        "recur.dispatches WHERE payload ->> 'n' <> '0' AND (status, attempt, result, claimed_by LIKE 'executor %',
                                                           started_at BETWEEN created_at AND finished_at)
                         IS DISTINCT FROM ('completed', 1, payload -> 'n', true, true)",
    );
    assert_eq!(wrong, 0);
    assert_eq!(session.count("recur.runs WHERE outcome = 'completed'"), 500);
}

#[test]
fn a_call_that_fails_takes_nothing_of_the_others() {
    let (_cluster, mut session) = started();
    session.batch(
        "SELECT recur.enqueue('app', 'a', jsonb_build_object('n', n, 'do',
                    CASE WHEN n % 20 = 0 THEN 'SELECT 1 / 0' ELSE 'SELECT' END), max_attempts => 2,
                    retry_backoff => '{\"base\": \"1 ms\", \"factor\": 1, \"cap\": \"1 ms\"}')
           FROM generate_series(1, 200) AS n",
    );
    idle(&mut session);
    let (all, different): (i64, i64) = (
        session.count("called"),
        session.count("(SELECT DISTINCT n FROM called WHERE n % 20 <> 0) AS n"),
    );
    assert_eq!((all, different), (190, 190));
    assert_eq!(
        session.count(
            "recur.dispatches WHERE status = 'failed' AND attempt = 2 AND error LIKE 'division by zero%'
                 AND jsonb_array_length(errors) = 2 AND (payload ->> 'n')::int % 20 = 0"
        ),
        10
    );
    let shared = transactions(&mut session, "true");
    assert!(shared < 150, "{shared} transactions");
}

#[test]
fn nothing_of_a_call_is_seen_by_the_next() {
    let (_cluster, mut session) = started();
    session.batch("CREATE SEQUENCE s; SELECT lo_create(4711)");
    let trace = "SELECT concat_ws(',', nullif(current_setting('work_mem'), '4MB'), nullif(current_user, session_user),
                    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()
                                                     AND granted AND NOT objid = 2),
                    (SELECT count(*) FROM pg_cursors WHERE name = 'left'))";
    let left = "DO $d$ DECLARE c refcursor := 'left'; BEGIN OPEN c FOR SELECT 1; END $d$";
    // Without a utility command, the group goes on.
    let leave = "SELECT set_config('work_mem', '7MB', false), pg_advisory_lock(1), pg_advisory_xact_lock(2),
                        nextval('s'), lo_open(4711, 262144), set_config('role', 'pg_monitor', false)";
    let payload =
        |what: &str| serde_json::json!({ "trace": trace, "do": what, "seen": "x" }).to_string();
    enqueue(&mut session, 1, 150, &payload(leave), "");
    idle(&mut session);
    enqueue(&mut session, 151, 160, &payload(left), "");
    idle(&mut session);
    let traces = session.texts("SELECT DISTINCT trace FROM called", &[]);
    assert_eq!(traces, ["0,0"]);
    let shared = transactions(&mut session, "n <= 150");
    assert!(shared < 75, "{shared} transactions");
    // Nor the last value of a sequence, nor an open large object.
    for (number, what) in [(200, "SELECT lastval()"), (300, "SELECT loread(0, 1)")] {
        enqueue(
            &mut session,
            number,
            number,
            &payload(what),
            ", max_attempts => 1",
        );
    }
    enqueue(&mut session, 400, 450, &payload("SELECT"), "");
    idle(&mut session);
    assert_eq!(session.count("recur.dispatches WHERE status = 'failed'"), 2);
}

#[test]
fn no_call_reads_what_an_earlier_one_of_its_group_keeps_open() {
    let (_cluster, mut session) = started();
    session.batch(
        "CREATE SEQUENCE s; SELECT lo_create(4711);
         SELECT recur.enqueue('app', 'a', jsonb_build_object('n', n, 'do',
                    CASE n % 2 WHEN 1 THEN 'SELECT nextval(''s''), lo_open(4711, 262144)'
                               ELSE CASE n % 4 WHEN 0 THEN 'SELECT lastval()' ELSE 'SELECT loread(0, 1)' END END),
                    max_attempts => 2, retry_backoff => '{\"base\": \"1 ms\", \"factor\": 1, \"cap\": \"1 ms\"}')
           FROM generate_series(1, 100) AS n",
    );
    idle(&mut session);
    assert_eq!(session.count("called"), 50);
    let failed = "recur.dispatches WHERE status = 'failed' AND (payload ->> 'n')::int % 2 = 0";
    assert_eq!(session.count(failed), 50);
}

#[test]
fn what_only_the_end_of_a_transaction_undoes_ends_the_group() {
    let (_cluster, mut session) = started();
    session.batch(
        "CREATE TABLE parent (id int PRIMARY KEY);
         CREATE TABLE child (id int REFERENCES parent DEFERRABLE INITIALLY IMMEDIATE)",
    );
    let trace = "SELECT concat_ws(',', to_regclass('pg_temp.left_over'),
                                  (SELECT count(*) FROM pg_prepared_statements))";
    let mut number = 0;
    for what in [
        "CREATE TEMP TABLE left_over ()",
        "PREPARE left_over AS SELECT 1",
        "SET CONSTRAINTS ALL DEFERRED",
        "SET work_mem = '7MB'",
    ] {
        warm_up(&mut session);
        number += 100;
        let payload = serde_json::json!({ "trace": trace, "do": what }).to_string();
        enqueue(&mut session, number, number + 20, &payload, "");
        idle(&mut session);
        assert_eq!(transactions(&mut session, "true"), 21, "{what}");
        assert_eq!(
            session.texts("SELECT DISTINCT trace FROM called", &[]),
            ["0"],
            "{what}"
        );
    }
}

#[test]
fn deferred_constraints_hold_for_each_call() {
    let (_cluster, mut session) = started();
    session.batch(
        "CREATE TABLE parent (id int PRIMARY KEY);
         CREATE TABLE child (id int REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
         SELECT recur.enqueue('app', 'a', jsonb_build_object('n', n, 'do', CASE n % 10
                    WHEN 0 THEN format('INSERT INTO child VALUES (%s)', n)
                    -- This one would mend what the one before it has broken.
                    WHEN 1 THEN format('INSERT INTO parent VALUES (%s)', n - 1)
                    ELSE format('WITH c AS (INSERT INTO child VALUES (%1$s)) INSERT INTO parent VALUES (%1$s)', n) END),
                    max_attempts => 2,
                    retry_backoff => '{\"base\": \"1 minute\", \"factor\": 1, \"cap\": \"1 minute\"}')
           FROM generate_series(1, 50) AS n",
    );
    eventually("all were called", || {
        session.count("recur_internal.live_dispatches WHERE status = 'running' OR attempt = 0") == 0
    });
    assert_eq!(session.count("called"), 45);
    assert_eq!(session.count("called WHERE n % 10 = 0"), 0);
    let refused = "recur.dispatches WHERE status = 'pending' AND attempt = 1 AND error LIKE '%violates foreign key%'";
    assert_eq!(session.count(refused), 5);
}

#[test]
fn settings_of_a_deferred_trigger_end_with_its_call() {
    let (_cluster, mut session) = started();
    session.batch(
        "CREATE TABLE t (n int); GRANT ALL ON t TO PUBLIC;
         CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN
             PERFORM set_config('work_mem', '7MB', false);
             RETURN NULL;
         END $f$;
         CREATE CONSTRAINT TRIGGER leave AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION leave()",
    );
    let payload = serde_json::json!({ "trace": "SELECT current_setting('work_mem')", "do": "INSERT INTO t VALUES (1)" })
        .to_string();
    enqueue(&mut session, 1, 150, &payload, "");
    idle(&mut session);
    assert_eq!(
        session.texts("SELECT DISTINCT trace FROM called", &[]),
        ["4MB"]
    );
    let shared = transactions(&mut session, "true");
    assert!(shared < 75, "{shared} transactions");
}

#[test]
fn a_slow_call_does_not_hold_up_its_group() {
    let (_cluster, mut session) = started();
    session.batch(
        "SELECT recur.enqueue('app', 'a', jsonb_build_object('n', n, 'do',
                    CASE n WHEN 30 THEN 'SELECT pg_sleep(600)' ELSE 'SELECT' END))
           FROM generate_series(1, 60) AS n",
    );
    let slow: Uuid = eventually_some("the slow one runs alone", || {
        let ids: Vec<Uuid> = session.column(
            "SELECT dispatch_id FROM recur.runs WHERE outcome = 'running' AND duration > '1 second'",
            &[],
        );
        ids.first().copied()
    });
    assert_eq!(session.count("called WHERE n < 30"), 29);
    session.execute("SELECT recur.cancel($1)", &[&slow]);
    assert_eq!(outcome(&mut session, slow).0, "cancelled");
    idle(&mut session);
    assert_eq!(session.count("called"), 59);
}

#[test]
fn a_call_that_ends_another_of_its_group_is_heard() {
    let (_cluster, mut session) = started();
    session.batch(
        "SELECT recur.enqueue('app', 'a', jsonb_build_object('n', n, 'do', CASE n
                    WHEN 10 THEN 'SELECT recur.cancel(id) FROM recur.dispatches WHERE payload ->> ''n'' = ''20'''
                    ELSE 'SELECT' END))
           FROM generate_series(1, 40) AS n",
    );
    idle(&mut session);
    let numbers: Vec<i32> = session.column("SELECT n FROM called ORDER BY n", &[]);
    let expected: Vec<i32> = (1..=40).filter(|n| *n != 20).collect();
    assert_eq!(numbers, expected);
    assert_eq!(
        session.count("recur.dispatches WHERE status = 'cancelled' AND payload ->> 'n' = '20'"),
        1
    );
}

#[test]
fn a_call_that_ends_its_process_is_counted() {
    let (_cluster, mut session) = started();
    session.batch(
        "SELECT recur.enqueue('app', 'a', jsonb_build_object('n', n, 'do', CASE n
                    WHEN 30 THEN 'SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(600)' ELSE 'SELECT' END),
                    retry_backoff => '{\"base\": \"1 ms\", \"factor\": 1, \"cap\": \"1 ms\"}')
           FROM generate_series(1, 120) AS n",
    );
    idle(&mut session);
    let (status, attempt): (String, i32) = (
        session.value(
            "SELECT status FROM recur.dispatches WHERE payload ->> 'n' = '30'",
            &[],
        ),
        session.value(
            "SELECT attempt FROM recur.dispatches WHERE payload ->> 'n' = '30'",
            &[],
        ),
    );
    assert_eq!((status.as_str(), attempt), ("failed", 3));
    assert_eq!(session.count("called"), 119);
    assert_eq!(session.count("(SELECT DISTINCT n FROM called) AS n"), 119);
}

#[test]
fn a_last_attempt_is_made_alone() {
    let (_cluster, mut session) = started();
    enqueue(&mut session, 1, 30, "{}", ", max_attempts => 1");
    idle(&mut session);
    assert_eq!(transactions(&mut session, "true"), 30);
}

#[test]
fn runs_of_an_action_with_a_context_see_the_one_before() {
    let (_cluster, mut session) = started();
    session.batch(
        "CREATE FUNCTION count_on(payload jsonb, INOUT context jsonb, OUT result jsonb) LANGUAGE plpgsql AS $$
         BEGIN
            INSERT INTO called VALUES ((context ->> 'n')::int);
            context := jsonb_build_object('n', (context ->> 'n')::int + 1);
         END $$;
         SELECT recur.set_handler('count', 'count_on(jsonb,jsonb)');
         SELECT recur.create('counter', '@yearly', 'app', 'count', context => '{\"n\": 1}', overlap => 'allow');
         SELECT recur.trigger('counter') FROM generate_series(1, 60)",
    );
    idle(&mut session);
    let numbers: Vec<i32> = session.column("SELECT n FROM called ORDER BY n", &[]);
    assert_eq!(numbers, (1..=60).collect::<Vec<i32>>());
}

#[test]
fn a_command_among_fast_calls_is_not_forgotten() {
    let (_cluster, mut session) = started();
    session.batch(
        "SELECT CASE n % 10 WHEN 0 THEN recur.enqueue_sql(format('INSERT INTO called (n) VALUES (%s)', n))
                            ELSE recur.enqueue('app', 'a', jsonb_build_object('n', n)) END
           FROM generate_series(1, 300) AS n",
    );
    idle(&mut session);
    assert_eq!(session.count("(SELECT DISTINCT n FROM called) AS n"), 300);
    assert_eq!(session.count("called"), 300);
}
