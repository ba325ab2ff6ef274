//! An HTTP call is scheduled in one line.

use super::{claim, endpoint, route, state};
use pg_recur_tests::actions::row;
use pg_recur_tests::{Cluster, Session};
use serde_json::{Value, json};
use uuid::Uuid;

fn delivered_to(session: &mut Session) -> Vec<(String, Value)> {
    route(session);
    let rows = session.rows(
        "SELECT url, payload::jsonb FROM recur.claim_webhooks(10)",
        &[],
    );
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[test]
fn a_schedule_calls_a_url() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action: Uuid = session.value(
        "SELECT recur.create_webhook('ping', '@hourly', 'https://example.com/ping', '{\"a\": 1}')",
        &[],
    );
    let shown = row(&mut session, action);
    assert_eq!(
        json!([
            shown["provider"],
            shown["action_type"],
            shown["endpoint"],
            shown["max_attempts"],
            shown["overlap"]
        ]),
        json!([
            "webhook",
            "webhook",
            "https://example.com/ping",
            8,
            "queue_one"
        ])
    );
    session.execute("SELECT recur.trigger($1::uuid)", &[&action]);
    let expected = [("https://example.com/ping".to_owned(), json!({"a": 1}))];
    assert_eq!(delivered_to(&mut session), expected);
    assert_eq!(state(&mut session, "https://example.com/ping"), "healthy");
    // What the schedule dispatches goes there as well.
    session.batch("SELECT recur.set_clock('2031-01-01T00:30Z')");
    session.execute(
        "SELECT recur.update($1::uuid, '{\"overlap\": \"allow\"}')",
        &[&action],
    );
    session.batch("SELECT recur.tick()");
    session.batch("SELECT recur.set_clock('2031-01-01T01:30Z')");
    session.batch("SELECT recur.tick()");
    assert!(delivered_to(&mut session).contains(&expected[0]));
}

#[test]
fn a_url_is_one_endpoint_however_often_it_is_given() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for _ in 0..3 {
        session.batch("SELECT recur.enqueue_webhook('https://a.example', '{\"x\": 1}')");
    }
    assert_eq!(session.count("recur.webhook_endpoints"), 1);
    assert_eq!(delivered_to(&mut session).len(), 3);
    // It gets only what names it.
    session.batch("SELECT recur.enqueue_webhook(action_type => 'task')");
    assert_eq!(route(&mut session), (0, 0, 0, 1));
    session.batch(
        "SELECT recur.update_endpoint('https://a.example', '{\"url\": \"https://b.example\"}')",
    );
    assert_eq!(
        session
            .error("SELECT recur.enqueue_webhook('https://a.example')")
            .1,
        "invalid url \"https://a.example\": your endpoint of this name has another URL"
    );
}

#[test]
fn an_endpoint_or_the_patterns_decide_where_no_url_is_given() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "crm", "{task:*}");
    let named: Uuid = session.value(
        "SELECT recur.create_webhook('n', '@daily', endpoint => 'crm', action_type => 'other')",
        &[],
    );
    let matching: Uuid = session.value(
        "SELECT recur.create_webhook('m', '@daily', action_type => 'task:daily', overlap => 'allow')",
        &[],
    );
    for action in [named, matching] {
        session.execute("SELECT recur.trigger($1::uuid)", &[&action]);
    }
    assert_eq!(route(&mut session), (1, 0, 0, 0));
    let claimed = claim(&mut session, 10);
    assert_eq!(claimed.len(), 2);
    assert!(claimed.iter().all(|one| one.2 == "crm"));
    assert_eq!(row(&mut session, matching)["overlap"], json!("allow"));
    // The endpoint can be changed like any column.
    session.execute(
        "SELECT recur.update($1::uuid, '{\"endpoint\": null}')",
        &[&named],
    );
    assert_eq!(row(&mut session, named)["endpoint"], Value::Null);
}

#[test]
fn what_is_wrong_is_named() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "crm", "{}");
    let long = format!("https://x/{}", "x".repeat(250));
    for (arguments, code, message) in [
        (
            "'https://x', endpoint => 'crm'",
            "22023",
            "invalid url \"https://x\": an endpoint is given as well",
        ),
        (
            "endpoint => 'none'",
            "P0002",
            "no endpoint has the name \"none\"",
        ),
        (
            "endpoint => 'operator:erp'",
            "22023",
            "invalid endpoint \"operator:erp\": must not begin with \"operator:\"",
        ),
        (
            "'file:///etc/passwd'",
            "22023",
            "invalid url \"file:///etc/passwd\": must begin with https:// or http://",
        ),
    ] {
        session.assert_error(
            &format!("SELECT recur.enqueue_webhook({arguments})"),
            code,
            message,
        );
        session.assert_error(
            &format!("SELECT recur.create_webhook('w', '@daily', {arguments})"),
            code,
            message,
        );
    }
    let (code, message, hint) = session.error(&format!("SELECT recur.enqueue_webhook('{long}')"));
    assert_eq!(code, "22023");
    assert!(
        message.ends_with("must not be longer than 255 characters here"),
        "{message}"
    );
    assert!(hint.starts_with("recur.create_endpoint"), "{hint}");
    assert_eq!(
        session
            .error("SELECT recur.create('x', '@daily', 'mail', 'a', endpoint => 'crm')")
            .1,
        "invalid endpoint \"crm\": means nothing unless provider is \"webhook\""
    );
    // Nothing is left of what failed.
    assert_eq!(session.count("recur.webhook_endpoints"), 1);
}

#[test]
fn a_key_merges_only_for_the_same_endpoint() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "a", "{}");
    endpoint(&mut session, "b", "{}");
    let send = |session: &mut Session, endpoint: &str, n: i32| -> Uuid {
        session.value(
            "SELECT recur.enqueue_webhook(endpoint => $1, payload => jsonb_build_object('n', $2::int),
                                          dedup_key => 'k')",
            &[&endpoint, &n],
        )
    };
    let first = send(&mut session, "a", 1);
    assert_ne!(send(&mut session, "b", 2), first);
    assert_eq!(send(&mut session, "a", 3), first);
    let payloads: Vec<Value> = session.column(
        "SELECT payload FROM recur.dispatches ORDER BY endpoint",
        &[],
    );
    assert_eq!(payloads, [json!({"n": 3}), json!({"n": 2})]);
}

#[test]
fn a_new_owner_sends_to_its_own_endpoints() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "CREATE ROLE webhook_heir LOGIN; SELECT recur.grant_access('webhook_heir', 'author')",
    );
    let mut heir = cluster.session_as("webhook_heir", "app");
    endpoint(&mut session, "mine", "{*}");
    endpoint(&mut heir, "theirs", "{*}");
    super::send(&mut session, "x");
    route(&mut session);
    session.batch("SELECT recur.reassign_owner('postgres', 'webhook_heir')");
    assert_eq!(route(&mut session), (1, 0, 0, 0));
    let names: Vec<String> = claim(&mut session, 10)
        .into_iter()
        .map(|one| one.2)
        .collect();
    assert_eq!(names, ["theirs"]);
    session.batch("SELECT recur.revoke_access('webhook_heir'); DROP ROLE webhook_heir");
}

#[test]
fn what_became_several_does_not_become_more_for_a_new_owner() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "CREATE ROLE webhook_other_heir LOGIN; SELECT recur.grant_access('webhook_other_heir', 'author')",
    );
    let mut heir = cluster.session_as("webhook_other_heir", "app");
    for name in ["a", "b"] {
        endpoint(&mut session, name, "{*}");
    }
    for name in ["a", "c"] {
        endpoint(&mut heir, name, "{*}");
    }
    super::send(&mut session, "x");
    assert_eq!(route(&mut session), (0, 1, 2, 0));
    session.batch("SELECT recur.reassign_owner('postgres', 'webhook_other_heir')");
    assert_eq!(route(&mut session), (0, 0, 0, 0));
    let claimed = session.rows("SELECT owner, endpoint FROM recur.claim_webhooks(10)", &[]);
    let claimed: Vec<(String, String)> =
        claimed.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(claimed, [("webhook_other_heir".to_owned(), "a".to_owned())]);
    let failed = "recur.dispatches WHERE status = 'failed' AND endpoint = 'b'";
    assert_eq!(session.count(failed), 1);
    session.batch("SELECT recur.revoke_access('webhook_other_heir'); DROP ROLE webhook_other_heir");
}
