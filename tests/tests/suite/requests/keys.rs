//! A request is carried out once for each key of a role, and its answer is kept for a while.

use pg_recur_tests::workers::{dispatcher, starts_to_fire};
use pg_recur_tests::{Cluster, Session, database_error, eventually, overtake};
use serde_json::{Value, json};

const BEGIN: &str = "SELECT status, response FROM recur.begin_request($1, $2)";

/// The answer of an earlier request with the key, if there is one.
#[track_caller]
fn begin(session: &mut Session, key: &str, fingerprint: &str) -> Option<(i32, Option<Value>)> {
    let rows = session.rows(BEGIN, &[&key, &fingerprint]);
    rows.first().map(|row| (row.get(0), row.get(1)))
}

#[track_caller]
fn finish(session: &mut Session, key: &str, response: &Value) {
    session.execute(
        "SELECT recur.finish_request($1, 201, $2)",
        &[&key, response],
    );
}

/// Creates an action as an HTTP front end would; the answer, and whether the action was created now.
fn create_once(session: &mut Session, key: &str) -> (Option<(i32, Option<Value>)>, bool) {
    session.batch("BEGIN");
    let mut answer = begin(session, key, "POST /v1/recurring");
    let is_new = answer.is_none();
    if is_new {
        let id: String = session.value(
            "SELECT recur.create('n', '@daily', 'p', 'a', on_existing => 'add_another')::text",
            &[],
        );
        let response = json!({"id": id, "n": 1.50});
        finish(session, key, &response);
        answer = Some((201, Some(response)));
    }
    session.batch("COMMIT");
    (answer, is_new)
}

#[test]
fn a_request_is_carried_out_once_and_answered_alike() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let first = create_once(&mut session, "k");
    assert!(first.1);
    for _ in 0..3 {
        let again = create_once(&mut session, "k");
        assert_eq!(again, (first.0.clone(), false));
    }
    assert!(create_once(&mut session, "another key").1);
    assert_eq!(session.count("recur.recurring_actions"), 2);

    // Numbers keep their digits, and an answer may have no body.
    session.batch(
        "BEGIN; SELECT recur.begin_request('n', 'f');
         SELECT recur.finish_request('n', 200, '{\"n\": 12345678901234567890.10}'); COMMIT;
         BEGIN; SELECT recur.begin_request('empty', 'f'); SELECT recur.finish_request('empty', 204); COMMIT",
    );
    let kept: String = session.value(
        "SELECT response::text FROM recur.begin_request('n', 'f')",
        &[],
    );
    assert_eq!(kept, "{\"n\": 12345678901234567890.10}");
    assert_eq!(begin(&mut session, "empty", "f"), Some((204, None)));
}

#[test]
fn what_was_rolled_back_was_no_request() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("BEGIN");
    assert_eq!(begin(&mut session, "k", "f"), None);
    finish(&mut session, "k", &json!({}));
    session.batch("ROLLBACK");
    // Nor what a savepoint has undone.
    session.batch("BEGIN; SAVEPOINT s");
    assert_eq!(begin(&mut session, "k", "f"), None);
    session.batch("ROLLBACK TO s");
    assert_eq!(begin(&mut session, "k", "other"), None);
    session.batch("COMMIT");
}

#[test]
fn a_key_is_for_one_request() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    create_once(&mut session, "k");
    let other = "SELECT recur.begin_request('k', 'DELETE /v1/recurring/7')";
    let (code, message, hint) = session.error(other);
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("RC012", "request \"k\" was another request")
    );
    assert!(!hint.is_empty());

    // Begun and never finished.
    let unfinished = "request \"open\" was begun and not finished";
    session.batch("BEGIN; SELECT recur.begin_request('open', 'f')");
    session.assert_error(
        "SELECT recur.begin_request('open', 'f')",
        "55000",
        unfinished,
    );
    session.batch("ROLLBACK; SELECT recur.begin_request('open', 'f')");
    session.assert_error(
        "SELECT recur.begin_request('open', 'f')",
        "55000",
        unfinished,
    );

    // Finished without having begun, or twice.
    let problem = |key| format!("request \"{key}\" was not begun, or has its answer already");
    for key in ["new", "k"] {
        let call = format!("SELECT recur.finish_request('{key}', 200)");
        session.assert_error(&call, "55000", &problem(key));
    }
}

#[test]
fn of_two_at_once_the_second_gets_the_answer_of_the_first() {
    let cluster = Cluster::quiet();
    let mut one = cluster.database("app");
    one.batch("BEGIN");
    assert_eq!(begin(&mut one, "k", "f"), None);
    let second = overtake(
        &cluster,
        "app",
        |two: &mut Session| begin(two, "k", "f"),
        || {
            finish(&mut one, "k", &json!({"first": true}));
            one.batch("COMMIT");
        },
    );
    assert_eq!(second, Some((201, Some(json!({"first": true})))));

    // Where the first fails, the second carries it out.
    one.batch("BEGIN");
    assert_eq!(begin(&mut one, "rolled back", "f"), None);
    let second = overtake(
        &cluster,
        "app",
        |two: &mut Session| {
            two.batch("BEGIN");
            let answer = begin(two, "rolled back", "f");
            finish(two, "rolled back", &json!({"second": true}));
            two.batch("COMMIT");
            answer
        },
        || one.batch("ROLLBACK"),
    );
    assert_eq!(second, None);
    let answer = begin(&mut one, "rolled back", "f");
    assert_eq!(answer, Some((201, Some(json!({"second": true})))));
}

#[test]
fn waiting_is_bounded_and_can_be_interrupted() {
    let cluster = Cluster::quiet();
    let mut one = cluster.database("app");
    // A role that has never written anything becomes an owner first.
    one.batch("SELECT recur.begin_request('first', 'f')");
    one.batch("BEGIN");
    assert_eq!(begin(&mut one, "k", "f"), None);
    // By the session's own limit, if that is shorter; the transaction goes on.
    let mut two = cluster.session("app");
    two.batch("BEGIN; SAVEPOINT s; SET LOCAL lock_timeout = '10ms'");
    let busy = "request \"k\" is still under way in another session";
    two.assert_error("SELECT recur.begin_request('k', 'f')", "55P03", busy);
    two.batch("ROLLBACK TO s");
    assert_eq!(begin(&mut two, "another", "f"), None);
    two.batch("COMMIT");
    // Without one, by the function's.
    two.batch("SET lock_timeout = 0");
    two.assert_error("SELECT recur.begin_request('k', 'f')", "55P03", busy);
    // And anybody may stop it.
    let cancelled = overtake(
        &cluster,
        "app",
        |waiting: &mut Session| {
            let call = "SELECT recur.begin_request('k', 'f')";
            database_error(&waiting.0.execute(call, &[]).unwrap_err()).0
        },
        || {
            two.batch(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity
                  WHERE cardinality(pg_blocking_pids(pid)) > 0 AND datname = current_database()",
            );
        },
    );
    assert_eq!(cancelled, "57014");
    one.batch("ROLLBACK");
}

/// A key of one role is another one than the same key of another role.
#[test]
fn roles_neither_see_nor_hold_up_the_requests_of_others() {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let mut admin = cluster.database("app");
    admin.batch(
        "CREATE ROLE victim LOGIN; SELECT recur.grant_access('victim', 'author');
         CREATE ROLE neighbour LOGIN; SELECT recur.grant_access('neighbour', 'author');
         CREATE ROLE consumer LOGIN; SELECT recur.grant_access('consumer', 'consumer')",
    );
    let mut neighbour = cluster.session_as("neighbour", "app");
    neighbour.batch("BEGIN");
    assert_eq!(begin(&mut neighbour, "k", "f"), None);
    finish(&mut neighbour, "k", &json!({"of": "neighbour"}));
    let mut victim = cluster.session_as("victim", "app");
    victim.batch("SET lock_timeout = '1ms'; BEGIN");
    assert_eq!(begin(&mut victim, "k", "another"), None);
    finish(&mut victim, "k", &json!({"of": "victim"}));
    victim.batch("COMMIT");
    neighbour.batch("COMMIT");
    for (session, role) in [(&mut victim, "victim"), (&mut neighbour, "neighbour")] {
        let fingerprint = if role == "victim" { "another" } else { "f" };
        let answer = begin(session, "k", fingerprint);
        assert_eq!(answer, Some((201, Some(json!({"of": role})))));
        assert_eq!(
            session.error("TABLE recur_internal.request_keys").0,
            "42501"
        );
    }
    // Not even an admin, by the functions: they are about the role's own requests.
    assert_eq!(begin(&mut admin, "k", "f"), None);
    // A pool's sessions act as the role that was set.
    admin.batch("SET ROLE victim");
    let answer = begin(&mut admin, "k", "another");
    assert_eq!(answer, Some((201, Some(json!({"of": "victim"})))));
    let mut consumer = cluster.session_as("consumer", "app");
    assert_eq!(
        consumer.error("SELECT recur.begin_request('k', 'f')").0,
        "42501"
    );
    assert_eq!(
        consumer.error("SELECT recur.finish_request('k', 1)").0,
        "42501"
    );
}

#[test]
fn what_is_stored_is_bounded() {
    let cluster = Cluster::preloaded("recur.max_request_keys_per_owner = 20\nrecur.enabled = off");
    let mut session = cluster.database("app");
    for (call, message) in [
        (
            "begin_request(NULL, 'f')",
            "invalid key \"NULL\": must have a value",
        ),
        (
            "begin_request('', 'f')",
            "invalid key \"\": must have 1 to 255 characters",
        ),
        (
            "begin_request('k', '')",
            "invalid fingerprint \"\": must have 1 to 255 characters",
        ),
        (
            "finish_request('k', 99)",
            "invalid status \"99\": must be a status of HTTP, from 100 to 599",
        ),
        (
            "finish_request('k', NULL)",
            "invalid status \"NULL\": must have a value",
        ),
    ] {
        session.assert_error(&format!("SELECT recur.{call}"), "22023", message);
    }
    for call in [
        "begin_request(repeat('k', 256), 'f')",
        "begin_request('k', repeat('f', 256))",
        "finish_request('k', 200, to_jsonb(repeat('x', 65536)))",
    ] {
        assert_eq!(
            session.error(&format!("SELECT recur.{call}")).0,
            "22023",
            "{call}"
        );
    }
    // As many keys as allowed, and then none, until some are forgotten.
    session.batch("SELECT recur.begin_request('k' || n, 'f') FROM generate_series(1, 20) AS n");
    let full = "the role has all of the 20 request keys that it may have";
    session.assert_error("SELECT recur.begin_request('one more', 'f')", "53400", full);
    assert_eq!(session.count("recur_internal.request_keys"), 20);
    session.batch(
        "UPDATE recur_internal.request_keys SET created_at = created_at - interval '1 day' WHERE key < 'k2';
         SELECT recur.begin_request('one more', 'f')",
    );
    // Other roles are not concerned.
    session.batch(
        "CREATE ROLE other; SELECT recur.grant_access('other', 'author');
         SET ROLE other; SELECT recur.begin_request('k1', 'f')",
    );
}

#[test]
fn a_key_is_forgotten_after_its_retention() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.mark_test_database(); SELECT recur.set_clock('2030-01-01 00:00+00');
         SELECT recur.set_setting('request_key_retention', '2h')",
    );
    let (answer, _) = create_once(&mut session, "k");
    session.batch("SELECT recur.set_clock('2030-01-01 01:59:59+00')");
    assert_eq!(create_once(&mut session, "k"), (answer, false));
    session.batch("SELECT recur.set_clock('2030-01-01 02:00+00')");
    assert!(create_once(&mut session, "k").1, "it is a new request");
    assert_eq!(session.count("recur_internal.request_keys"), 1);
    // Where no worker comes by, a tick removes what is forgotten, and nothing else.
    session.batch(
        "SELECT recur.set_clock('2030-01-01 03:00+00'); SELECT recur.begin_request('later', 'f');
         SELECT recur.set_clock('2030-01-01 04:00+00'); SELECT recur.tick()",
    );
    let left = session.texts("SELECT key FROM recur_internal.request_keys", &[]);
    assert_eq!(left, ["later"]);
}

#[test]
fn maintenance_removes_what_is_forgotten() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    starts_to_fire(&mut session, "tick");
    // More than one step; one of them is being taken again.
    session.batch(
        "INSERT INTO recur_internal.request_keys (owner_id, key, fingerprint, created_at)
         SELECT 1, 'k' || n, 'f', now() - interval '2 days' FROM generate_series(1, 2500) AS n;
         SELECT recur.begin_request('fresh', 'f')",
    );
    let mut taking = cluster.session("app");
    taking.batch("BEGIN; SELECT FROM recur_internal.request_keys WHERE key = 'k7' FOR UPDATE");
    // The first dispatcher looks when it starts.
    let pid = dispatcher(&mut session, "app");
    session.execute("SELECT pg_terminate_backend($1)", &[&pid]);
    eventually("the forgotten keys are gone", || {
        session.count("recur_internal.request_keys") == 2
    });
    let left = session.texts(
        "SELECT key FROM recur_internal.request_keys ORDER BY key",
        &[],
    );
    assert_eq!(left, ["fresh", "k7"]);
}
