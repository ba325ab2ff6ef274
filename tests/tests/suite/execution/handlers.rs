//! Handlers: functions that run dispatches in the transaction of their completion.

use super::outcome;
use pg_recur_tests::{Cluster, Session, eventually};
use serde_json::{Value, json};
use uuid::Uuid;

fn enqueue(session: &mut Session, action_type: &str, payload: Value) -> Uuid {
    session.value(
        "SELECT recur.enqueue('app', $1, $2)",
        &[&action_type, &payload],
    )
}

#[test]
fn a_handler_runs_every_dispatch_of_its_type() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    session.batch(
        "CREATE TABLE mails (recipient text);
         CREATE FUNCTION send(payload jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
         BEGIN
            INSERT INTO mails VALUES (payload ->> 'to');
            RETURN jsonb_build_object('sent', payload ->> 'to');
         END $$;
         CREATE FUNCTION other(payload jsonb) RETURNS void LANGUAGE sql AS 'INSERT INTO mails VALUES (''other'')';",
    );
    let before = enqueue(&mut session, "mail:send", json!({"to": "early"}));
    session.batch(
        "SELECT recur.set_handler('mail:send', 'send(jsonb)');
         SELECT recur.set_handler('mail:*', 'other(jsonb)');",
    );
    let (status, result, error) = outcome(&mut session, before);
    assert_eq!((status.as_str(), error.as_str()), ("completed", ""));
    assert_eq!(result, json!({"sent": "early"}));
    let id = enqueue(&mut session, "mail:drop", json!({}));
    let (status, result, _) = outcome(&mut session, id);
    assert_eq!((status.as_str(), result), ("completed", Value::Null));
    session.batch(
        "SELECT recur.create('daily', 'every 1 second', 'app', 'mail:send', '{\"to\": \"all\"}')",
    );
    eventually("the schedule runs", || {
        session.count("mails WHERE recipient = 'all'") >= 2
    });
    // One pattern has one handler.
    let (code, ..) = session.error("SELECT recur.set_handler('mail:*', 'send(jsonb)')");
    assert_eq!(code, "23505");
    session.batch("SELECT recur.drop_handler('mail:send'); SELECT recur.drop_handler('mail:*')");
    let id = enqueue(&mut session, "mail:send", json!({"to": "nobody"}));
    let status: String = session.value("SELECT status FROM recur.dispatches WHERE id = $1", &[&id]);
    assert_eq!(status, "pending");
    assert_eq!(
        session.count("recur.claim(1, action_types => '{mail:send}')"),
        1
    );
}

#[test]
fn a_run_finds_the_context_of_the_last_one() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    session.batch(
        "CREATE FUNCTION count_on(payload jsonb, context jsonb, dispatch jsonb, OUT result jsonb)
         LANGUAGE sql AS $$ SELECT dispatch - 'id' $$;
         CREATE FUNCTION count_on(payload jsonb, INOUT context jsonb, OUT result jsonb) LANGUAGE plpgsql AS $$
         BEGIN
            context := jsonb_build_object('n', coalesce((context ->> 'n')::int, 0) + 1);
            result := context || payload;
         END $$;
         SELECT recur.set_handler('count', 'count_on(jsonb,jsonb)');
         SELECT recur.set_handler('show', 'count_on(jsonb,jsonb,jsonb)');
         SELECT recur.create('counter', '@yearly', 'app', 'count', '{\"p\": 1}', context => '{\"n\": 5}');",
    );
    for expected in 6..9 {
        let id: Uuid = session.value("SELECT recur.trigger('counter')", &[]);
        let (status, result, error) = outcome(&mut session, id);
        assert_eq!((status.as_str(), error.as_str()), ("completed", ""));
        assert_eq!(result, json!({"n": expected, "p": 1}));
    }
    let context: Value = session.value("SELECT context FROM recur.get('counter')", &[]);
    assert_eq!(context, json!({"n": 8}));
    let id = enqueue(&mut session, "show", json!({}));
    let (_, result, _) = outcome(&mut session, id);
    assert_eq!(
        (&result["trigger"], &result["attempt"]),
        (&json!("enqueue"), &json!(1))
    );
}

#[test]
fn effects_and_completion_happen_together_or_not_at_all() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    session.batch(
        "CREATE TABLE tried (n int);
         CREATE FUNCTION fail(payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
         BEGIN
            INSERT INTO tried VALUES (1);
            RAISE 'no %', payload ->> 'luck';
         END $$;
         SELECT recur.set_handler('fail', 'fail(jsonb)');",
    );
    let id: Uuid = session.value(
        "SELECT recur.enqueue('app', 'fail', '{\"luck\": \"luck\"}', max_attempts => 2,
                              retry_backoff => '{\"base\": \"1 ms\", \"factor\": 1, \"cap\": \"1 ms\"}')",
        &[],
    );
    let (status, result, error) = outcome(&mut session, id);
    assert_eq!(status, "failed");
    assert!(error.starts_with("no luck (SQLSTATE P0001)"), "{error}");
    assert_eq!(result["error"]["message"], "no luck");
    assert_eq!(session.count("tried"), 0);
    let attempts: i32 = session.value("SELECT attempt FROM recur.dispatches WHERE id = $1", &[&id]);
    assert_eq!(attempts, 2);
}

#[test]
fn functions_that_are_no_handlers_are_refused() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "CREATE FUNCTION takes_text(text) RETURNS jsonb LANGUAGE sql AS 'SELECT NULL::jsonb';
         CREATE FUNCTION returns_text(jsonb) RETURNS text LANGUAGE sql AS 'SELECT ''a''';
         CREATE FUNCTION returns_set(jsonb) RETURNS SETOF jsonb LANGUAGE sql AS 'SELECT $1';
         CREATE FUNCTION takes_four(jsonb, jsonb, jsonb, jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
         CREATE FUNCTION is_strict(jsonb) RETURNS jsonb LANGUAGE sql STRICT AS 'SELECT $1';
         CREATE PROCEDURE is_procedure(jsonb) LANGUAGE sql AS 'SELECT $1';
         CREATE FUNCTION fine(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';",
    );
    for function in [
        "takes_text(text)",
        "returns_text(jsonb)",
        "returns_set(jsonb)",
        "takes_four(jsonb,jsonb,jsonb,jsonb)",
        "is_strict(jsonb)",
        "is_procedure(jsonb)",
    ] {
        let (code, message, hint) =
            session.error(&format!("SELECT recur.set_handler('a', '{function}')"));
        assert_eq!(code, "22023", "{message}");
        assert!(message.starts_with("invalid function"), "{message}");
        assert!(!hint.is_empty());
    }
    for (call, code) in [
        ("recur.set_handler('a', 'nowhere(jsonb)')", "42883"),
        ("recur.set_handler('a*b', 'fine(jsonb)')", "22023"),
        (
            "recur.set_handler('a', 'fine(jsonb)', timeout => '0')",
            "22023",
        ),
        ("recur.drop_handler('a')", "P0002"),
    ] {
        let (found, message, _) = session.error(&format!("SELECT {call}"));
        assert_eq!(found, code, "{message}");
    }
}

#[test]
fn a_consumer_gets_what_has_a_handler_only_by_the_name_of_its_provider() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "CREATE FUNCTION fine(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
         SELECT recur.set_handler('a', 'fine(jsonb)');
         SELECT recur.enqueue('app', 'a'), recur.enqueue('app', 'b');",
    );
    assert_eq!(session.count("recur.claim(9)"), 1);
    assert_eq!(
        session.count("recur.claim(9, providers => '{other,another}')"),
        0
    );
    assert_eq!(session.count("recur.claim(9, providers => '{app}')"), 1);
}

#[test]
fn each_owner_has_handlers_of_its_own() {
    let cluster = Cluster::preloaded("");
    let mut admin = cluster.database("app");
    admin.batch(
        "CREATE FUNCTION who(payload jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT to_jsonb(session_user)';
         CREATE ROLE cay LOGIN; SELECT recur.grant_access('cay', 'author'), recur.grant_access('cay', 'consumer')",
    );
    for owner in ["ann", "ben"] {
        admin.batch(&format!(
            "CREATE ROLE {owner} LOGIN; SELECT recur.grant_access('{owner}', 'sql')"
        ));
        let mut session = cluster.session_as(owner, "app");
        session.batch("SELECT recur.set_handler('who', 'who(jsonb)')");
        let id = enqueue(&mut session, "who", json!({}));
        let (_, result, error) = outcome(&mut session, id);
        assert_eq!((result, error.as_str()), (json!(owner), ""));
    }
    // Who has no handler has a consumer.
    let mut cay = cluster.session_as("cay", "app");
    enqueue(&mut cay, "who", json!({}));
    assert_eq!(cay.count("recur.claim(1)"), 1);
}
