//! Endpoints are made, changed and dropped; their secrets are rotated.

use super::{claim, endpoint, endpoint_events, send_to, state};
use pg_recur_tests::{Cluster, Session};

fn secrets(session: &mut Session) -> Vec<String> {
    let id = send_to(session, "a");
    let secrets = session.value("SELECT secrets FROM recur.claim_webhooks(1)", &[]);
    session.execute("SELECT recur.report_webhook($1, 1, 'delivered')", &[&id]);
    secrets
}

#[test]
fn an_endpoint_is_shown_without_its_secrets() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let secret: String = session.value(
        "SELECT recur.create_endpoint('a', 'https://a.example/x?y=1', '{b:*,a,a}',
                                      headers => '{\"X-B\": \"hidden\", \"Authorization\": \"hidden\"}',
                                      timeout => '2.5 s', rate => 0.5, concurrency => 3, description => 'd')",
        &[],
    );
    assert!(
        secret.starts_with("whsec_") && secret.len() == 50,
        "{secret}"
    );
    let shown: String = session.value("SELECT e::text FROM recur.webhook_endpoints AS e", &[]);
    assert!(
        !shown.contains("hidden") && !shown.contains("whsec_"),
        "{shown}"
    );
    let row = &session.rows(
        "SELECT owner, url, patterns, headers, timeout::text, rate, concurrency, enabled, description, state
           FROM recur.webhook_endpoints",
        &[],
    )[0];
    assert_eq!(row.get::<_, String>(0), "postgres");
    assert_eq!(row.get::<_, Vec<String>>(2), ["a", "b:*"]);
    assert_eq!(row.get::<_, Vec<String>>(3), ["Authorization", "X-B"]);
    assert_eq!(row.get::<_, String>(4), "00:00:02.5");
    assert_eq!((row.get::<_, f64>(5), row.get::<_, i32>(6)), (0.5, 3));
    assert_eq!(
        (row.get::<_, bool>(7), row.get::<_, String>(9)),
        (true, "healthy".to_owned())
    );
    // Each has a secret of its own, and one may bring its own.
    assert_ne!(endpoint(&mut session, "b", "{}"), secret);
    let given: String = session.value(
        "SELECT recur.create_endpoint('c', 'https://c.example', 
                                      secret => 'whsec_' || encode(repeat('x', 24)::bytea, 'base64'))",
        &[],
    );
    assert_eq!(given, "whsec_eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4");
    let events: i64 = session.count("recur.events WHERE detail::text ~ 'whsec_|hidden'");
    assert_eq!(events, 0);
}

#[test]
fn what_is_wrong_is_named() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "a", "{}");
    for (call, code, message) in [
        (
            "create_endpoint(NULL, 'https://x')",
            "22023",
            "invalid name \"NULL\": must have a value",
        ),
        (
            "create_endpoint('x', NULL)",
            "22023",
            "invalid url \"NULL\": must have a value",
        ),
        (
            "create_endpoint('a', 'https://x')",
            "23505",
            "you have an endpoint \"a\" already",
        ),
        (
            "create_endpoint('operator:x', 'https://x')",
            "22023",
            "invalid name \"operator:x\": must not begin with \"operator:\"",
        ),
        (
            "create_endpoint('x', 'x')",
            "22023",
            "invalid url \"x\": must begin with https:// or http://",
        ),
        (
            "create_endpoint('x', 'https://x', '{a*b}')",
            "22023",
            "invalid patterns \"a*b\": may have a * only at its end",
        ),
        (
            "create_endpoint('x', 'https://x', secret => 'abc')",
            "22023",
            "invalid secret \"…\": must be whsec_ and the base64 of 24 to 64 bytes",
        ),
        (
            "create_endpoint('x', 'https://x', headers => '{\"Host\": \"y\"}')",
            "22023",
            "invalid headers \"Host\": is set by the delivery itself",
        ),
        (
            "create_endpoint('x', 'https://x', rate => 'NaN')",
            "22023",
            "invalid rate \"NaN\": must be from 0.001 to 10,000 deliveries a second",
        ),
    ] {
        session.assert_error(&format!("SELECT recur.{call}"), code, message);
    }
}

#[test]
fn what_can_not_be_changed_is_named() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "a", "{}");
    for (call, code, message) in [
        (
            "update_endpoint('a', '{\"x\": 1}')",
            "22023",
            "invalid change \"x\": is no setting of an endpoint",
        ),
        (
            "update_endpoint('a', NULL)",
            "22023",
            "invalid changes \"NULL\": must have a value",
        ),
        (
            "update_endpoint('x', '{}')",
            "P0002",
            "no endpoint has the name \"x\"",
        ),
        (
            "drop_endpoint('x')",
            "P0002",
            "no endpoint has the name \"x\"",
        ),
        (
            "rotate_webhook_secret('x')",
            "P0002",
            "no endpoint has the name \"x\"",
        ),
        (
            "resume_endpoint('x')",
            "P0002",
            "no endpoint has the name \"x\"",
        ),
    ] {
        session.assert_error(&format!("SELECT recur.{call}"), code, message);
    }
}

#[test]
fn changes_hold_from_the_next_claim_on() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "a", "{}");
    let change = |session: &mut Session, changes: &str| {
        session.execute(
            "SELECT recur.update_endpoint('a', $1::text::jsonb)",
            &[&changes],
        );
    };
    change(
        &mut session,
        "{\"url\": \"https://b.example\", \"timeout\": \"1 min\"}",
    );
    send_to(&mut session, "a");
    let row = &session.rows(
        "SELECT url, timeout::text FROM recur.claim_webhooks(1)",
        &[],
    )[0];
    assert_eq!(
        (row.get(0), row.get(1)),
        ("https://b.example".to_owned(), "00:01:00".to_owned())
    );
    send_to(&mut session, "a");
    change(&mut session, "{\"enabled\": false}");
    assert_eq!(state(&mut session, "a"), "disabled");
    assert!(claim(&mut session, 1).is_empty());
    change(&mut session, "{\"enabled\": true}");
    assert_eq!(claim(&mut session, 1).len(), 1);
    // What changes nothing is no event.
    let before = endpoint_events(&mut session).len();
    change(&mut session, "{\"enabled\": true}");
    assert_eq!(endpoint_events(&mut session).len(), before);
    session.batch("SELECT recur.drop_endpoint('a')");
    assert_eq!(session.count("recur_internal.endpoint_secrets"), 0);
    assert_eq!(session.count("recur_internal.endpoint_health"), 0);
    assert_eq!(
        endpoint_events(&mut session).pop().unwrap(),
        "endpoint.dropped a"
    );
}

#[test]
fn a_former_secret_signs_for_a_day() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SELECT recur.set_clock('2031-01-01Z')");
    let first = endpoint(&mut session, "a", "{}");
    let rotate = "SELECT recur.rotate_webhook_secret('a')";
    session.batch("SELECT recur.set_clock('2031-01-01T01:00Z')");
    let second: String = session.value(rotate, &[]);
    assert_eq!(secrets(&mut session), [second.clone(), first.clone()]);
    session.batch("SELECT recur.set_clock('2031-01-01T02:00Z')");
    let third: String = session.value(rotate, &[]);
    assert_eq!(
        secrets(&mut session),
        [third.clone(), second.clone(), first]
    );
    session.batch("SELECT recur.set_clock('2031-01-02T01:00Z')");
    assert_eq!(secrets(&mut session), [third.clone(), second]);
    session.batch("SELECT recur.set_clock('2031-01-02T02:00Z')");
    assert_eq!(secrets(&mut session), [third]);
    // Every delivery is signed with each of them: there are not many.
    for _ in 0..4 {
        session.batch(rotate);
    }
    let (code, message, _) = session.error(rotate);
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("53400", "endpoint \"a\" has 5 secrets that hold")
    );
    session.batch("SELECT recur.set_clock('2031-01-03T03:00Z')");
    session.batch(rotate);
    assert_eq!(secrets(&mut session).len(), 2);
}

#[test]
fn an_owner_has_a_thousand_endpoints_at_most() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT count(recur.create_endpoint('e' || n, 'https://x')) FROM generate_series(1, 1000) AS n",
    );
    let message = "an owner has at most 1000 endpoints";
    session.assert_error(
        "SELECT recur.create_endpoint('x', 'https://x')",
        "53400",
        message,
    );
    session.assert_error(
        "SELECT recur.enqueue_webhook('https://x')",
        "53400",
        message,
    );
    session.batch("SELECT recur.drop_endpoint('e1'); SELECT recur.enqueue_webhook('https://x')");
}

#[test]
fn the_owner_that_is_named_is_found_among_many() {
    let cluster = Cluster::quiet();
    let mut admin = cluster.database("app");
    let roles: Vec<String> = (1..=8)
        .map(|number| format!("webhook_one_of_{number}"))
        .collect();
    for role in &roles {
        admin.batch(&format!(
            "CREATE ROLE {role}; SELECT recur.grant_access('{role}', 'author'); SET ROLE {role};
             SELECT recur.create_endpoint('a', 'https://a.example'); RESET ROLE"
        ));
    }
    for role in &roles {
        admin.execute("SELECT recur.resume_endpoint('a', owner => $1)", &[role]);
    }
    let (code, message, _) = admin.error("SELECT recur.resume_endpoint('a')");
    assert_eq!(code, "P0003", "{message}");
    for role in &roles {
        admin.batch(&format!(
            "SELECT recur.revoke_access('{role}'); DROP ROLE {role}"
        ));
    }
}
