//! One-time dispatches: enqueue and receive.

use chrono::{DateTime, Utc};
use pg_recur_tests::queue::{enqueue, idle_action, queue_for};
use pg_recur_tests::{Cluster, Session};
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
            "'p', 't', to_jsonb(repeat('x', 1024 * 1024))",
            "invalid payload \"1048588 bytes\": must not have more than 1048576 bytes",
        ),
        (
            "'p', 't', labels => '{\"n\": 1}'",
            "invalid labels \"{\"n\": 1}\": must be a JSON object with only strings as values",
        ),
        (
            "'p', 't', name => ''",
            "invalid name \"\": must not be empty",
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
fn a_payload_is_any_json() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for payload in [
        json!([1, "two", null]),
        json!("text"),
        json!(3.5),
        json!(true),
        Value::Null,
    ] {
        let id: Uuid = session.value("SELECT recur.enqueue('p', 't', $1)", &[&payload]);
        let row = &session.rows("SELECT id, payload FROM recur.claim(1)", &[])[0];
        assert_eq!((row.get(0), row.get(1)), (id, payload));
    }
    session
        .batch("SELECT recur.receive('p', 't', '', headers => '[[\"A\", \"1\"], [\"A\", \"2\"]]')");
    let payload: Value = session.value("SELECT payload FROM recur.claim(1)", &[]);
    assert_eq!(payload, json!({"headers": [["A", "1"], ["A", "2"]]}));
}

#[test]
fn a_dispatch_has_a_name_and_labels() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.enqueue('p', 'mail', name => 'welcome mail', labels => '{\"team\": \"growth\"}');
         SELECT recur.receive('p', 'hook', '', name => 'order hook', labels => '{\"shop\": \"a\"}');
         SELECT recur.enqueue('p', 'plain');
         SELECT recur.create('morning report', '@daily', 'p', 'report');
         SELECT recur.trigger('morning report')",
    );
    let described = |session: &mut Session, from: &str| -> Vec<String> {
        session.texts(
            &format!("SELECT concat_ws(' ', action_type, name, labels) FROM {from} ORDER BY 1"),
            &[],
        )
    };
    let expected = [
        "hook order hook {\"shop\": \"a\"}",
        "mail welcome mail {\"team\": \"growth\"}",
        "plain",
        "report morning report",
    ];
    assert_eq!(described(&mut session, "recur.dispatches"), expected);
    session.batch("SELECT recur.update('morning report', '{\"name\": \"evening report\"}')");
    session.batch("BEGIN");
    let claimed = described(&mut session, "recur.claim(9)");
    assert_eq!(claimed[3], "report evening report", "the name as it is now");
    assert_eq!(claimed[..3], expected[..3]);
    session.batch("ROLLBACK");
    session.batch(
        "SELECT count(c) FROM (SELECT recur.complete(id, attempt) FROM recur.claim(9)) AS c",
    );
    assert_eq!(described(&mut session, "recur.dispatches"), claimed);
    assert_eq!(
        session.count("recur.dispatches WHERE labels @> '{\"team\": \"growth\"}'"),
        1
    );
}

/// Each change moves `updated_at`, and nothing else does.
#[test]
fn a_dispatch_says_when_it_last_changed() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id: Uuid = session.value("SELECT recur.enqueue('p', 't', dedup_key => 'k')", &[]);
    let updated = |session: &mut Session| -> DateTime<Utc> {
        session.value(
            "SELECT updated_at FROM recur.dispatches WHERE id = $1",
            &[&id],
        )
    };
    let mut before: DateTime<Utc> = session.value(
        "SELECT created_at FROM recur.dispatches WHERE id = $1",
        &[&id],
    );
    assert_eq!(updated(&mut session), before);
    for call in [
        "enqueue('p', 't', dedup_key => 'k')".to_owned(),
        "claim(1)".to_owned(),
        format!("extend('{id}', 1)"),
        format!("release('{id}', 1)"),
        "claim(1)".to_owned(),
        format!("fail('{id}', 2, 'x', retry => false)"),
        format!("retry('{id}')"),
        "claim(1)".to_owned(),
        format!("cancel('{id}')"),
        format!("complete('{id}', 3)"),
    ] {
        session.batch(&format!("SELECT recur.{call}"));
        let after = updated(&mut session);
        assert!(after > before, "{call}: {before} {after}");
        before = after;
    }
    let of_claim: bool = session.value(
        "SELECT bool_and(c.updated_at = c.started_at)
           FROM (SELECT recur.enqueue('p', 't')) AS e, LATERAL recur.claim(1) AS c",
        &[],
    );
    assert!(of_claim);
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

/// Each dispatch is written three times, so a default takes no room.
#[test]
fn defaults_are_shown_and_not_stored() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, "");
    let ids = [queue_for(&mut session, action), enqueue(&mut session, "")];
    let set = "lease => '1 hour', metadata => '{\"k\": \"v\"}'";
    let other = idle_action(&mut session, &format!(", {set}"));
    let set = [queue_for(&mut session, other), enqueue(&mut session, set)];
    let stored =
        "recur_internal.live_dispatches WHERE id = $1 AND lease IS NULL AND metadata IS NULL";
    let shown = "SELECT concat_ws(' ', lease, metadata - '_recurring_dispatch' - '_recurring_id')
                   FROM recur.dispatches WHERE id = $1";
    for (ids, number, text) in [(ids, 1, "00:05:00 {}"), (set, 0, "01:00:00 {\"k\": \"v\"}")] {
        for id in ids {
            let defaults: i64 = session.value(&format!("SELECT count(*) FROM {stored}"), &[&id]);
            assert_eq!(defaults, number);
            assert_eq!(session.value::<String>(shown, &[&id]), text);
        }
    }
    // The lease of each holds, and the history shows the same.
    let expected = |id: &Uuid| {
        if set.contains(id) {
            "01:00:00"
        } else {
            "00:05:00"
        }
    };
    let claims = session.rows(
        "SELECT id, (date_trunc('minute', lease_expires_at - started_at + interval '1 second'))::text, lease::text
           FROM recur.claim(10)",
        &[],
    );
    assert_eq!(claims.len(), 4);
    for row in claims {
        let id: Uuid = row.get(0);
        assert_eq!([row.get::<_, &str>(1), row.get(2)], [expected(&id); 2]);
        session.execute("SELECT recur.complete($1, 1)", &[&id]);
        let lease: String = session.value(
            "SELECT lease::text FROM recur.dispatches WHERE id = $1",
            &[&id],
        );
        assert_eq!(lease, expected(&id));
    }
}
