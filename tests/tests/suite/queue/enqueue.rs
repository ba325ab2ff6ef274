//! One-time dispatches: enqueue and receive.

use pg_recur_tests::Cluster;
use serde_json::{Value, json};
use std::collections::HashSet;
use uuid::Uuid;

#[test]
fn enqueue_merges_what_is_pending_under_one_key() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mut enqueue = |payload: &str, window: &str| -> (Uuid, Value) {
        let sql = format!(
            "SELECT recur.enqueue('p', 't', '{payload}', dedup_key => 'k', dedup_window => {window})"
        );
        let id: Uuid = session.value(&sql, &[]);
        let payload = "SELECT payload FROM recur.dispatches WHERE id = $1";
        (id, session.value(payload, &[&id]))
    };
    let (first, _) = enqueue("{\"n\": 1}", "NULL");
    assert_eq!(enqueue("{\"n\": 2}", "'1 hour'"), (first, json!({"n": 2})));
    let (second, _) = enqueue("{\"n\": 3}", "'0'");
    assert_ne!(second, first, "a window of 0 never merges");
    // Another kind, tenant, namespace or provider is another thing.
    for other in [
        "tenant => 'x'",
        "namespace => 'x'",
        "subject => NULL, lock_group => NULL, priority => 0",
    ] {
        let id: Uuid = session.value(
            &format!("SELECT recur.enqueue('p', 't', dedup_key => 'k', {other})"),
            &[],
        );
        assert_eq!(id == second, !other.contains('x'), "{other}");
    }
    session
        .batch("UPDATE recur_internal.live_dispatches SET created_at = now() - interval '2 hours'");
    let old: Uuid = session.value(
        "SELECT recur.enqueue('p', 't', dedup_key => 'k', dedup_window => '1 hour')",
        &[],
    );
    assert!(![first, second].contains(&old), "older than the window");
    session.batch("SELECT recur.claim(10)");
    let next: Uuid = session.value("SELECT recur.enqueue('p', 't', dedup_key => 'k')", &[]);
    assert!(
        ![first, second, old].contains(&next),
        "what runs is not merged into"
    );
    // Nor is a dispatch of an action.
    session.batch("SELECT recur.create('a', '@hourly', 'p', 't', dedup_key => 'mine', payload => '{\"n\": 1}')");
    let of_action: Uuid = session.value(
        "SELECT recur.trigger((SELECT id FROM recur.recurring_actions))",
        &[],
    );
    let other: Uuid = session.value("SELECT recur.enqueue('p', 't', dedup_key => 'mine')", &[]);
    assert_ne!(of_action, other);
}

#[test]
fn concurrent_duplicates_give_one_row() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let ids: HashSet<Uuid> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|number| {
                let mut session = cluster.session("app");
                scope.spawn(move || -> Vec<Uuid> {
                    (0..20)
                        .map(|_| {
                            session.value(
                                "SELECT recur.enqueue('p', 't', jsonb_build_object('from', $1::int), dedup_key => 'k')",
                                &[&number],
                            )
                        })
                        .collect()
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap())
            .collect()
    });
    assert_eq!(ids.len(), 1);
    assert_eq!(session.count("recur.dispatches"), 1);
}

#[test]
fn what_is_enqueued_for_later_is_available_then() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id: Uuid = session.value(
        "SELECT recur.enqueue('p', 't', run_at => '2099-01-01Z')",
        &[],
    );
    let row = &session.rows(
        "SELECT action_id, trigger, available_at = scheduled_at, scheduled_at = '2099-01-01Z'
           FROM recur.dispatches WHERE id = $1",
        &[&id],
    )[0];
    assert_eq!(row.get::<_, Option<Uuid>>(0), None);
    assert_eq!(row.get::<_, String>(1), "enqueue");
    assert!(row.get::<_, bool>(2) && row.get::<_, bool>(3));
    assert!(session.rows("SELECT FROM recur.claim(1)", &[]).is_empty());
    for (arguments, message) in [
        ("'', 't'", "invalid provider \"\": must not be empty"),
        ("'p', ''", "invalid action_type \"\": must not be empty"),
        (
            "'p', 't', '3'",
            "invalid payload \"3\": must be a JSON object",
        ),
        (
            "'p', 't', dedup_key => 'k', dedup_window => '-1 s'",
            "invalid dedup_window \"-00:00:01\": must be zero or longer",
        ),
        (
            "'p', 't', dedup_key => 'k', dedup_window => '1000000 years'",
            "invalid dedup_window \"1000000 years\": must not be longer than 100 years, nor have a part that is",
        ),
        (
            "'p', 't', max_attempts => 0",
            "invalid max_attempts \"0\": must be at least 1",
        ),
        (
            "'p', 't', lease => '0'",
            "invalid lease \"00:00:00\": must be longer than nothing",
        ),
        (
            "'p', 't', notify_channel => repeat('x', 64)",
            "invalid notify_channel \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\": must have 1 \
             to 63 bytes",
        ),
        (
            "'p', 't', run_at => 'infinity'",
            "invalid run_at \"infinity\": must be a finite point in time",
        ),
    ] {
        session.assert_error(
            &format!("SELECT recur.enqueue({arguments})"),
            "22023",
            message,
        );
    }
}

#[test]
fn receive_keeps_a_body_byte_for_byte() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let body: Vec<u8> = (0..=255).chain([0, 0, 0xff, 0xfe]).collect();
    let id: Uuid = session.value(
        "SELECT recur.receive('shop', 'order.created', $1, 'application/octet-stream',
                              '{\"X-Signature\": \"abc\"}', dedup_key => 'delivery 1')",
        &[&body],
    );
    let again: Uuid = session.value(
        "SELECT recur.receive('shop', 'order.created', $1, 'application/octet-stream',
                              '{\"X-Signature\": \"abc\"}', dedup_key => 'delivery 1')",
        &[&body],
    );
    assert_eq!(id, again, "a delivery that is repeated is one");
    let row = &session.rows(
        "SELECT raw_payload, trigger, payload, metadata FROM recur.claim(1)",
        &[],
    )[0];
    assert_eq!(row.get::<_, Vec<u8>>(0), body);
    assert_eq!(row.get::<_, String>(1), "webhook");
    assert_eq!(
        row.get::<_, Value>(2),
        json!({"headers": {"X-Signature": "abc"}})
    );
    assert_eq!(
        row.get::<_, Value>(3),
        json!({"content_type": "application/octet-stream"})
    );
    session.batch("SELECT recur.receive('shop', 'ping', '')");
    let empty: Vec<u8> = session.value("SELECT raw_payload FROM recur.claim(1)", &[]);
    assert!(empty.is_empty());
    let (code, message, hint) = session.error("SELECT recur.receive('shop', 'ping', NULL)");
    assert_eq!(
        (code.as_str(), message.as_str(), hint.as_str()),
        (
            "22023",
            "invalid raw_payload \"NULL\": must have a value",
            "An empty body is ''::bytea."
        )
    );
}
