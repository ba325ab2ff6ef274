//! Reports on deliveries: fenced, and of webhooks only.

use super::{claim, deliver, endpoint, report, send_to};
use pg_recur_tests::queue::{claim_this, enqueue, let_lease_run_out, status};
use pg_recur_tests::{Cluster, Session};
use serde_json::{Value, json};
use uuid::Uuid;

fn with_endpoint(cluster: &Cluster) -> Session {
    let mut session = cluster.database("app");
    endpoint(&mut session, "a", "{}");
    session
}

/// In how many seconds it is tried again.
fn waits(session: &mut Session, id: Uuid) -> f64 {
    session.value(
        "SELECT extract(epoch FROM available_at - recur.clock())::float8 FROM recur.dispatches WHERE id = $1",
        &[&id],
    )
}

#[test]
fn what_is_delivered_is_completed_with_its_result() {
    let cluster = Cluster::quiet();
    let mut session = with_endpoint(&cluster);
    let id = send_to(&mut session, "a");
    claim(&mut session, 1);
    let status: String = session.value(
        "SELECT status FROM recur.report_webhook($1, 1, 'delivered', 204, '{\"body\": \"\"}')",
        &[&id],
    );
    assert_eq!(status, "completed");
    let result: Value = session.value("SELECT result FROM recur.dispatches WHERE id = $1", &[&id]);
    assert_eq!(result, json!({"body": ""}));
    let health = &session.rows(
        "SELECT state, last_status, last_delivered_at IS NOT NULL FROM recur.webhook_endpoints",
        &[],
    )[0];
    assert_eq!(
        (health.get(0), health.get(1), health.get(2)),
        ("healthy".to_owned(), 204, true)
    );
}

#[test]
fn retries_follow_the_list_unless_something_else_is_asked_for() {
    let cluster = Cluster::quiet();
    let mut session = with_endpoint(&cluster);
    session.batch("SELECT recur.set_clock('2031-01-01Z')");
    let id = send_to(&mut session, "a");
    let mut hours = 0;
    for (attempt, seconds) in [5.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0, 36_000.0]
        .into_iter()
        .enumerate()
    {
        assert_eq!(report_next(&mut session, id, attempt as i32 + 1), "pending");
        let pause = waits(&mut session, id);
        assert!(
            (pause - seconds).abs() <= seconds * 0.1 + 0.01,
            "{attempt}: {pause}"
        );
        hours += 12;
        let at = format!("2031-01-01Z'::timestamptz + interval '{hours} hours");
        session.batch(&format!("SELECT recur.set_clock('{at}')"));
        session.batch("SELECT recur.resume_endpoint('a')");
    }
    assert_eq!(report_next(&mut session, id, 8), "failed");
    // An action's own back-off, and what the endpoint asks for.
    let other: Uuid = session.value(
        "SELECT recur.enqueue_webhook(endpoint => 'a',
                retry_backoff => '{\"base\": \"2 min\", \"factor\": 1, \"cap\": \"2 min\"}')",
        &[],
    );
    session.batch("SELECT recur.resume_endpoint('a')");
    report_next(&mut session, other, 1);
    assert!((waits(&mut session, other) - 120.0).abs() <= 12.0);
    let third = send_to(&mut session, "a");
    let attempt = claim(&mut session, 1)[0].1;
    session.execute(
        "SELECT recur.report_webhook($1, $2, 'throttled', 429, retry_in => '90 s')",
        &[&third, &attempt],
    );
    assert_eq!(waits(&mut session, third), 90.0);
    assert_eq!(super::state(&mut session, "a"), "throttled");
    let until: f64 = session.value(
        "SELECT extract(epoch FROM throttled_until - recur.clock())::float8 FROM recur.webhook_endpoints",
        &[],
    );
    assert_eq!(until, 90.0);
}

fn report_next(session: &mut Session, id: Uuid, attempt: i32) -> String {
    let claimed = claim(session, 1);
    assert_eq!((claimed[0].0, claimed[0].1), (id, attempt));
    report(session, id, attempt, "failed")
}

#[test]
fn an_old_attempt_counts_for_nothing() {
    let cluster = Cluster::quiet();
    let mut session = with_endpoint(&cluster);
    let id = send_to(&mut session, "a");
    assert_eq!(claim(&mut session, 1)[0].1, 1);
    let calls = [
        "recur.report_webhook($1, $2, 'delivered')",
        "recur.report_webhook($1, $2, 'failed')",
        "recur.extend_webhook($1, $2)",
        "recur.release_webhook($1, $2)",
    ];
    let refused = |session: &mut Session, attempt: i32| {
        for call in calls {
            let error = session.error_with(&format!("SELECT {call}"), &[&id, &attempt]);
            assert_eq!(error.0, "RC001", "{call}: {}", error.1);
        }
    };
    refused(&mut session, 2);
    let_lease_run_out(&mut session, id);
    refused(&mut session, 1);
    assert_eq!(
        super::state(&mut session, "a"),
        "healthy",
        "nor for its endpoint"
    );
    session.execute(
        "UPDATE recur_internal.live_dispatches SET lease_expires_at = 'infinity' WHERE id = $1",
        &[&id],
    );
    assert_eq!(report(&mut session, id, 1, "delivered"), "completed");
    refused(&mut session, 1);
}

#[test]
fn leases_are_renewed_and_attempts_given_back() {
    let cluster = Cluster::quiet();
    let mut session = with_endpoint(&cluster);
    let id = send_to(&mut session, "a");
    claim(&mut session, 1);
    let status: String = session.value(
        "SELECT status FROM recur.extend_webhook($1, 1, '1 hour')",
        &[&id],
    );
    assert_eq!(status, "running");
    let lease: f64 = session.value(
        "SELECT extract(epoch FROM lease_expires_at - recur.clock())::float8 FROM recur.dispatches",
        &[],
    );
    assert!(lease > 3_500.0, "{lease}");
    // What was given back has not failed, neither for its attempts nor for the endpoint.
    for attempt in 1..10 {
        let status: String = session.value(
            "SELECT status FROM recur.release_webhook($1, $2)",
            &[&id, &attempt],
        );
        assert_eq!(status, "pending");
        assert_eq!(claim(&mut session, 1)[0].1, attempt + 1);
    }
    assert_eq!(super::state(&mut session, "a"), "healthy");
    // A request to cancel is heard.
    session.execute("SELECT recur.cancel($1)", &[&id]);
    assert_eq!(report(&mut session, id, 10, "failed"), "cancelled");
}

#[test]
fn other_dispatches_are_none_of_a_deliverers_business() {
    let cluster = Cluster::quiet();
    let mut session = with_endpoint(&cluster);
    let id = enqueue(&mut session, "");
    let attempt = claim_this(&mut session, id);
    for call in [
        "recur.report_webhook($1, $2, 'delivered')",
        "recur.extend_webhook($1, $2)",
        "recur.release_webhook($1, $2)",
    ] {
        let (code, message, _) = session.error_with(&format!("SELECT {call}"), &[&id, &attempt]);
        assert_eq!(
            (code.as_str(), message),
            ("P0002", format!("no webhook has the id {id}"))
        );
    }
    assert_eq!(status(&mut session, id), "running");
    for (call, message) in [
        (
            "NULL, 1, 'failed'",
            "invalid id \"NULL\": must have a value",
        ),
        (
            "gen_random_uuid(), NULL, 'failed'",
            "invalid attempt \"NULL\": must have a value",
        ),
        (
            "gen_random_uuid(), 1, NULL",
            "invalid outcome \"NULL\": must have a value",
        ),
        (
            "gen_random_uuid(), 1, 'lost'",
            "invalid outcome \"lost\": must be delivered, failed, gone or throttled",
        ),
    ] {
        let call = format!("SELECT recur.report_webhook({call})");
        let (code, text, _) = session.error(&call);
        assert_eq!((code.as_str(), text.as_str()), ("22023", message));
    }
    let negative =
        "SELECT recur.report_webhook(gen_random_uuid(), 1, 'failed', retry_in => '-1 s')";
    assert_eq!(session.error(negative).0, "22023");
}

#[test]
fn an_expired_lease_brings_a_delivery_back() {
    let cluster = Cluster::quiet();
    let mut session = with_endpoint(&cluster);
    let id = send_to(&mut session, "a");
    claim(&mut session, 1);
    let_lease_run_out(&mut session, id);
    session.batch("SELECT recur.tick()");
    assert_eq!(status(&mut session, id), "pending");
    assert_eq!(claim(&mut session, 1)[0].1, 2);
    assert_eq!(report(&mut session, id, 2, "delivered"), "completed");
    send_to(&mut session, "a");
    assert_eq!(deliver(&mut session, "delivered"), "completed");
}

#[test]
fn an_author_who_leaves_a_transaction_open_holds_up_no_report() {
    let cluster = Cluster::quiet();
    let mut session = with_endpoint(&cluster);
    let mut author = cluster.session("app");
    for _ in 0..3 {
        send_to(&mut session, "a");
    }
    let claimed = claim(&mut session, 3);
    // More than a report waits for anything.
    session.batch("SET lock_timeout = '3 s'");
    author.batch(
        "BEGIN; SELECT recur.resume_endpoint('a'); SELECT recur.update_endpoint('a', '{\"rate\": 1}')",
    );
    let [failed, delivered, cancelled] = claimed.as_slice() else {
        panic!("{} were claimed", claimed.len());
    };
    assert_eq!(report(&mut session, failed.0, 1, "failed"), "pending");
    assert_eq!(
        report(&mut session, delivered.0, 1, "delivered"),
        "completed"
    );
    author.batch("ROLLBACK");
    assert_eq!(
        super::state(&mut session, "a"),
        "healthy",
        "it was not noted"
    );
    // What the author has locked is reported again.
    author.batch("BEGIN");
    author.execute("SELECT recur.cancel($1)", &[&cancelled.0]);
    session.batch("SET lock_timeout = 0; SET statement_timeout = '20 s'");
    for call in [
        "recur.report_webhook($1, 1, 'failed')",
        "recur.report_webhook($1, 1, 'delivered')",
        "recur.extend_webhook($1, 1)",
        "recur.release_webhook($1, 1)",
    ] {
        let (code, message, _) = session.error_with(&format!("SELECT {call}"), &[&cancelled.0]);
        assert_eq!(code, "55P03", "{call}: {message}");
    }
    author.batch("ROLLBACK");
    assert_eq!(report(&mut session, cancelled.0, 1, "failed"), "pending");
    assert_eq!(super::state(&mut session, "a"), "failing");
}
