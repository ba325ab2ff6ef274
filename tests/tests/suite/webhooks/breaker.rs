//! An endpoint that keeps failing is left alone, tried again, and at last disabled.

use super::{claim, deliver, endpoint, endpoint_events, report, route, send, send_to, state};
use pg_recur_tests::{Cluster, Session};
use serde_json::Value;

fn with_backlog(cluster: &Cluster) -> Session {
    let mut session = cluster.database("app");
    session.batch("SELECT recur.set_clock('2031-01-01Z')");
    endpoint(&mut session, "a", "{*}");
    for _ in 0..60 {
        send_to(&mut session, "a");
    }
    session
}

fn set_clock(session: &mut Session, after: &str) {
    session.execute(
        "SELECT recur.set_clock('2031-01-01Z'::timestamptz + $1::text::interval)",
        &[&after],
    );
}

#[test]
fn five_failures_pause_it_and_a_probe_brings_it_back() {
    let cluster = Cluster::quiet();
    let mut session = with_backlog(&cluster);
    let late = claim(&mut session, 1);
    for failure in 1..=5 {
        assert_eq!(
            state(&mut session, "a"),
            if failure == 1 { "healthy" } else { "failing" }
        );
        deliver(&mut session, "failed");
    }
    assert_eq!(state(&mut session, "a"), "paused");
    assert!(claim(&mut session, 10).is_empty());
    // What was under way when the pause began neither prolongs it nor is lost.
    report(&mut session, late[0].0, late[0].1, "failed");
    set_clock(&mut session, "29 s");
    assert!(claim(&mut session, 10).is_empty());
    set_clock(&mut session, "30 s");
    assert_eq!(state(&mut session, "a"), "probing");
    let probe = claim(&mut session, 10);
    assert_eq!(probe.len(), 1);
    assert!(claim(&mut session, 10).is_empty(), "one probe at a time");
    report(&mut session, probe[0].0, probe[0].1, "failed");
    assert_eq!(state(&mut session, "a"), "paused");
    set_clock(&mut session, "89 s");
    assert!(claim(&mut session, 10).is_empty(), "twice as long");
    set_clock(&mut session, "90 s");
    assert_eq!(deliver(&mut session, "delivered"), "completed");
    assert_eq!(state(&mut session, "a"), "healthy");
    assert_eq!(claim(&mut session, 10).len(), 10);
    assert_eq!(
        endpoint_events(&mut session),
        [
            "endpoint.created a",
            "endpoint.paused a",
            "endpoint.resumed a"
        ]
    );
    let detail: Value = session.value(
        "SELECT detail FROM recur.events WHERE kind = 'endpoint.paused'",
        &[],
    );
    assert_eq!(
        (&detail["failures"], &detail["error"]),
        (&5.into(), &"no luck".into())
    );
    assert_eq!(detail["until"], "2031-01-01T00:00:30Z");
}

#[test]
fn a_program_that_dies_with_the_probe_does_not_hold_it_up() {
    let cluster = Cluster::quiet();
    let mut session = with_backlog(&cluster);
    for _ in 0..5 {
        deliver(&mut session, "failed");
    }
    set_clock(&mut session, "30 s");
    let probe = claim(&mut session, 10)[0].0;
    assert!(claim(&mut session, 10).is_empty());
    set_clock(&mut session, "1 hour");
    session.batch("SELECT recur.tick()");
    let again = claim(&mut session, 10);
    assert_eq!(again.len(), 1);
    assert_ne!(probe, uuid::Uuid::nil());
}

#[test]
fn after_five_days_it_is_disabled_until_somebody_resumes_it() {
    let cluster = Cluster::quiet();
    let mut session = with_backlog(&cluster);
    deliver(&mut session, "failed");
    set_clock(&mut session, "119 hours");
    deliver(&mut session, "failed");
    assert_eq!(state(&mut session, "a"), "failing");
    set_clock(&mut session, "120 hours");
    deliver(&mut session, "failed");
    assert_eq!(state(&mut session, "a"), "disabled");
    set_clock(&mut session, "1000 hours");
    assert!(claim(&mut session, 10).is_empty());
    // New webhooks do not wait for it.
    send(&mut session, "x");
    assert_eq!(route(&mut session), (0, 0, 0, 1));
    let why: String = session.value("SELECT disabled_reason FROM recur.webhook_endpoints", &[]);
    assert_eq!(why, "no delivery has succeeded for five days");
    session.batch("SELECT recur.resume_endpoint('a')");
    assert_eq!(state(&mut session, "a"), "healthy");
    assert_eq!(claim(&mut session, 10).len(), 10);
    assert_eq!(
        endpoint_events(&mut session),
        [
            "endpoint.created a",
            "endpoint.disabled a",
            "endpoint.resumed a"
        ]
    );
    // To resume what runs changes nothing.
    session.batch("SELECT recur.resume_endpoint('a')");
    assert_eq!(endpoint_events(&mut session).len(), 3);
}

#[test]
fn an_endpoint_that_is_gone_is_disabled_at_once() {
    let cluster = Cluster::quiet();
    let mut session = with_backlog(&cluster);
    let running = claim(&mut session, 3);
    assert_eq!(
        report(&mut session, running[0].0, running[0].1, "gone"),
        "failed"
    );
    assert_eq!(state(&mut session, "a"), "disabled");
    assert!(claim(&mut session, 10).is_empty());
    // A delivery that was under way counts, and does not bring the endpoint back.
    assert_eq!(
        report(&mut session, running[1].0, running[1].1, "delivered"),
        "completed"
    );
    assert_eq!(
        report(&mut session, running[2].0, running[2].1, "failed"),
        "pending"
    );
    assert_eq!(state(&mut session, "a"), "disabled");
    session.batch("SELECT recur.update_endpoint('a', '{\"enabled\": true, \"url\": \"https://new.example\"}')");
    assert_eq!(claim(&mut session, 10).len(), 10);
    assert_eq!(
        endpoint_events(&mut session),
        [
            "endpoint.created a",
            "endpoint.disabled a",
            "endpoint.resumed a",
            "endpoint.changed a"
        ]
    );
}

#[test]
fn an_endpoint_of_the_operator_has_a_breaker_as_well() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SELECT recur.set_clock('2031-01-01Z')");
    let operator = serde_json::json!([{"name": "erp", "patterns": ["*"]}]);
    for _ in 0..40 {
        send(&mut session, "x");
    }
    session.execute("SELECT recur.route_webhooks($1)", &[&operator]);
    let claim = "SELECT id FROM recur.claim_webhooks(1, operator => $1)";
    let answer = |session: &mut Session, outcome: &str, http_status: Option<i32>| {
        let id: uuid::Uuid = session.value(claim, &[&operator]);
        session.execute(
            "SELECT recur.report_webhook($1, 1, $2, $3, reason => 'no luck')",
            &[&id, &outcome, &http_status],
        );
    };
    let held = "recur_internal.endpoint_health WHERE coalesce(paused_until, disabled_at) IS NOT NULL OR failures > 0";
    // What may be due to one owner's payloads closes it to nobody.
    for _ in 0..3 {
        for (outcome, http_status) in [
            ("failed", 400),
            ("failed", 413),
            ("gone", 410),
            ("failed", 302),
        ] {
            answer(&mut session, outcome, Some(http_status));
        }
    }
    assert_eq!(session.count(held), 0);
    for http_status in [None, Some(500), Some(429), Some(503)] {
        answer(&mut session, "failed", http_status);
    }
    // A refused payload in between says nothing, neither good nor bad.
    answer(&mut session, "failed", Some(400));
    answer(&mut session, "failed", None);
    assert!(session.rows(claim, &[&operator]).is_empty());
    session.batch("SELECT recur.resume_endpoint('operator:erp')");
    assert_eq!(session.rows(claim, &[&operator]).len(), 1);
    assert_eq!(
        endpoint_events(&mut session),
        [
            "endpoint.paused operator:erp",
            "endpoint.resumed operator:erp"
        ]
    );
}

#[test]
fn webhooks_wait_for_an_endpoint_of_the_operator_that_is_disabled() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SELECT recur.set_clock('2031-01-01Z')");
    let operator = serde_json::json!([{"name": "erp", "patterns": ["*"]}]);
    let route = "SELECT bound FROM recur.route_webhooks($1)";
    let claim = "SELECT id FROM recur.claim_webhooks(1, operator => $1)";
    for after in ["0", "5 days"] {
        set_clock(&mut session, after);
        send(&mut session, "x");
        session.execute(route, &[&operator]);
        let id: uuid::Uuid = session.value(claim, &[&operator]);
        let attempt: i32 =
            session.value("SELECT attempt FROM recur.dispatches WHERE id = $1", &[&id]);
        report(&mut session, id, attempt, "failed");
    }
    let disabled = "recur_internal.endpoint_health WHERE disabled_at IS NOT NULL";
    assert_eq!(session.count(disabled), 1);
    send(&mut session, "x");
    let bound: i32 = session.value(route, &[&operator]);
    assert_eq!(bound, 1);
    assert!(session.rows(claim, &[&operator]).is_empty());
    session.batch("SELECT recur.resume_endpoint('operator:erp')");
    assert_eq!(session.rows(claim, &[&operator]).len(), 1);
}
