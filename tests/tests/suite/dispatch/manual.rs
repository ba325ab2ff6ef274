//! Dispatches that no schedule asked for: trigger, backfill, enqueue, receive.

use pg_recur_tests::{Cluster, Session};
use serde_json::{Value, json};
use std::collections::HashSet;
use uuid::Uuid;

fn create(session: &mut Session, name: &str, more: &str) -> Uuid {
    session.value(
        &format!(
            "SELECT id FROM recur.create($1, '@hourly', 'p', 't', payload => '{{\"n\": 1}}'{more})"
        ),
        &[&name],
    )
}

#[test]
fn trigger_dispatches_now_and_leaves_the_schedule_alone() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("trigger_now");
    let action = create(&mut session, "a", ", metadata => '{\"k\": \"v\"}'");
    let before = session.texts("SELECT (t.*)::text FROM recur.timers AS t", &[]);
    let row = &session.rows(
        "SELECT id, payload, trigger, metadata FROM recur.trigger($1)",
        &[&action],
    )[0];
    assert_eq!(row.get::<_, Value>(1), json!({"n": 1}));
    assert_eq!(row.get::<_, String>(2), "manual");
    assert_eq!(
        row.get::<_, Value>(3),
        json!({"k": "v", "_recurring_dispatch": "true", "_recurring_id": action.to_string()})
    );
    let other: Value = session.value(
        "SELECT payload FROM recur.trigger($1, '{\"n\": 2}')",
        &[&action],
    );
    assert_eq!(other, json!({"n": 2}));
    session.execute("SELECT recur.pause($1)", &[&action]);
    session.execute("SELECT recur.trigger($1)", &[&action]);
    session.execute("SELECT recur.resume($1)", &[&action]);
    assert_eq!(
        session.texts("SELECT (t.*)::text FROM recur.timers AS t", &[]),
        before
    );
    let claimed: i64 = session.value("SELECT count(*) FROM recur.claim(10)", &[]);
    assert_eq!(claimed, 3, "each is a dispatch of its own");

    let (code, message, _) = session.error(&format!("SELECT recur.trigger('{action}', '[1]')"));
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("22023", "invalid payload \"[1]\": must be a JSON object")
    );
    let (code, message, _) = session.error(&format!("SELECT recur.trigger('{}')", Uuid::nil()));
    assert_eq!(
        (code.as_str(), message),
        ("P0002", format!("no action has the id {}", Uuid::nil()))
    );
}

#[test]
fn backfill_makes_up_for_what_has_no_dispatch() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("backfill");
    let action = create(&mut session, "a", ", starts_at => '2026-01-01 00:30Z'");
    // One of them has run, one is pending.
    session.batch("UPDATE recur.timers SET next_run_at = '2026-01-01 03:00Z'");
    session.tick("2026-01-01 03:00Z");
    session.batch("SELECT recur.complete(id, attempt) FROM recur.claim(1)");
    session.tick("2026-01-01 04:00Z");
    let backfill = |session: &mut Session, from: &str, until: &str, limit: i32| -> Vec<String> {
        session.texts(
            "SELECT to_char(scheduled_at AT TIME ZONE 'UTC', 'HH24:MI') || ' ' || trigger
               FROM recur.backfill($1, $2::text::timestamptz, $3::text::timestamptz, $4)",
            &[&action, &from, &until, &limit],
        )
    };
    // Both ends are included; nothing before starts_at; what was dispatched is left out; from next_run_at on it is due.
    let range = ("2025-12-31 22:00Z", "2026-01-01 06:00Z");
    assert_eq!(
        backfill(&mut session, range.0, range.1, 1),
        ["01:00 backfill"]
    );
    assert_eq!(
        backfill(&mut session, range.0, range.1, 100),
        ["02:00 backfill"]
    );
    assert!(backfill(&mut session, range.0, range.1, 100).is_empty());
    let books: bool = session.value(
        "SELECT next_run_at = '2026-01-01 05:00Z' AND last_run_at = '2026-01-01 04:00Z' AND run_count = 2 FROM recur.recurring_actions",
        &[],
    );
    assert!(books, "the schedule goes on as it was");
    let ids: bool = session.value(
        "SELECT bool_and(id = recur._dispatch_id(action_id, scheduled_at)) FROM recur.dispatches",
        &[],
    );
    assert!(ids);
    for (arguments, message) in [
        (
            "'2026-01-02Z', '2026-01-01Z'",
            "invalid until \"2026-01-01 00:00:00+00\": must not lie before \"from\", which is \"2026-01-02 00:00:00+00\"",
        ),
        (
            "'2026-01-02Z', '2099-01-01Z'",
            "invalid until \"2099-01-01 00:00:00+00\": must not lie in the future",
        ),
        (
            "'2026-01-01Z', '2026-01-02Z', 0",
            "invalid limit \"0\": must be at least 1",
        ),
        (
            "'2026-01-01Z', '2026-01-02Z', 10001",
            "invalid limit \"10001\": must not be more than 10000",
        ),
    ] {
        session.batch("SET timezone = 'UTC'");
        let (code, text, _) =
            session.error(&format!("SELECT recur.backfill('{action}', {arguments})"));
        assert_eq!((code.as_str(), text.as_str()), ("22023", message));
    }
}

#[test]
fn backfill_reaches_beyond_a_page() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("backfill_pages");
    let action: Uuid = session.value(
        "SELECT id FROM recur.create('a', '* * * * *', 'p', 't', starts_at => '2026-01-01Z')",
        &[],
    );
    let made = |session: &mut Session, limit: i32| -> i64 {
        session.value(
            "SELECT count(*) FROM recur.backfill($1, '2026-01-01Z', '2026-01-02Z', $2)",
            &[&action, &limit],
        )
    };
    assert_eq!(made(&mut session, 1_200), 1_200);
    assert_eq!(made(&mut session, 1_200), 241);
}

#[test]
fn enqueue_merges_what_is_pending_under_one_key() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("dedup");
    let mut enqueue = |payload: &str, window: &str| -> (Uuid, Value) {
        let row = &session.rows(
            &format!("SELECT id, payload FROM recur.enqueue('p', 't', '{payload}', dedup_key => 'k', dedup_window => {window})"),
            &[],
        )[0];
        (row.get(0), row.get(1))
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
            &format!("SELECT id FROM recur.enqueue('p', 't', dedup_key => 'k', {other})"),
            &[],
        );
        assert_eq!(id == second, !other.contains('x'), "{other}");
    }
    session.batch("UPDATE recur.live_dispatches SET created_at = now() - interval '2 hours'");
    let old: Uuid = session.value(
        "SELECT id FROM recur.enqueue('p', 't', dedup_key => 'k', dedup_window => '1 hour')",
        &[],
    );
    assert!(![first, second].contains(&old), "older than the window");
    session.batch("SELECT recur.claim(10)");
    let next: Uuid = session.value(
        "SELECT id FROM recur.enqueue('p', 't', dedup_key => 'k')",
        &[],
    );
    assert!(
        ![first, second, old].contains(&next),
        "what runs is not merged into"
    );
    // Nor is a dispatch of an action.
    session.batch("SELECT recur.create('a', '@hourly', 'p', 't', dedup_key => 'mine', payload => '{\"n\": 1}')");
    let of_action: Uuid = session.value(
        "SELECT id FROM recur.trigger((SELECT id FROM recur.recurring_actions))",
        &[],
    );
    let other: Uuid = session.value(
        "SELECT id FROM recur.enqueue('p', 't', dedup_key => 'mine')",
        &[],
    );
    assert_ne!(of_action, other);
}

#[test]
fn concurrent_duplicates_give_one_row() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("duplicates");
    let ids: HashSet<Uuid> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|number| {
                let mut session = cluster.session("duplicates");
                scope.spawn(move || -> Vec<Uuid> {
                    (0..20)
                        .map(|_| {
                            session.value(
                                "SELECT id FROM recur.enqueue('p', 't', jsonb_build_object('from', $1::int), dedup_key => 'k')",
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
    let rows: i64 = session.value("SELECT count(*) FROM recur.dispatches", &[]);
    assert_eq!(rows, 1);
}

#[test]
fn enqueue_at_its_time() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("enqueue_later");
    let row = &session.rows(
        "SELECT id, action_id, trigger, available_at = scheduled_at, scheduled_at = '2030-01-01Z'
           FROM recur.enqueue('p', 't', run_at => '2030-01-01Z')",
        &[],
    )[0];
    assert_eq!(row.get::<_, Option<Uuid>>(1), None);
    assert_eq!(row.get::<_, String>(2), "enqueue");
    assert!(row.get::<_, bool>(3) && row.get::<_, bool>(4));
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
            "invalid notify_channel \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\": must have 1 to 63 bytes",
        ),
        (
            "'p', 't', run_at => 'infinity'",
            "invalid run_at \"infinity\": must be a finite point in time",
        ),
    ] {
        let (code, text, _) = session.error(&format!("SELECT recur.enqueue({arguments})"));
        assert_eq!((code.as_str(), text.as_str()), ("22023", message));
    }
}

#[test]
fn receive_keeps_a_body_byte_for_byte() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("receive");
    let body: Vec<u8> = (0..=255).chain([0, 0, 0xff, 0xfe]).collect();
    let id: Uuid = session.value(
        "SELECT id FROM recur.receive('shop', 'order.created', $1, 'application/octet-stream', '{\"X-Signature\": \"abc\"}', dedup_key => 'delivery 1')",
        &[&body],
    );
    let again: Uuid = session.value(
        "SELECT id FROM recur.receive('shop', 'order.created', $1, 'application/octet-stream', '{\"X-Signature\": \"abc\"}', dedup_key => 'delivery 1')",
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
    let empty: Vec<u8> = session.value(
        "SELECT raw_payload FROM recur.receive('shop', 'ping', '')",
        &[],
    );
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

#[test]
fn nobody_runs_what_is_not_his() {
    let cluster = Cluster::quiet();
    let mut admin = cluster.database("run_roles");
    admin.batch(
        "CREATE ROLE run_red LOGIN; CREATE ROLE run_blue LOGIN; CREATE ROLE run_reader LOGIN;
         SELECT recur.grant_access('run_red', 'author'), recur.grant_access('run_blue', 'author'), recur.grant_access('run_reader', 'reader')",
    );
    let mut red = cluster.session_as("run_red", "run_roles");
    let action = create(&mut red, "a", ", starts_at => '2026-01-01Z'");
    let owner: String = red.value("SELECT owner::text FROM recur.trigger($1)", &[&action]);
    assert_eq!(owner, "run_red");
    let owner: String = red.value("SELECT owner::text FROM recur.enqueue('p', 't')", &[]);
    assert_eq!(owner, "run_red");
    let made: i64 = red.value(
        "SELECT count(*) FROM recur.backfill($1, '2026-01-01Z', '2026-01-01 05:00Z')",
        &[&action],
    );
    assert_eq!(made, 6);
    let mut blue = cluster.session_as("run_blue", "run_roles");
    for statement in [
        format!("SELECT recur.trigger('{action}')"),
        format!("SELECT recur.backfill('{action}', '2026-01-01Z', '2026-01-02Z')"),
        format!("SELECT recur.explain('{action}', '2026-01-01Z')"),
    ] {
        let (code, message, _) = blue.error(&statement);
        assert_eq!(
            (code.as_str(), message),
            ("P0002", format!("no action has the id {action}")),
            "{statement}"
        );
    }
    // Past the door that looks: what has the work done by the extension's owner looks again.
    let sneaked: Option<Uuid> = blue.value("SELECT recur._dispatch_by_hand($1, NULL)", &[&action]);
    assert_eq!(sneaked, None);
    let sneaked: Option<Vec<Uuid>> = blue.value(
        "SELECT recur._dispatch_missing($1, '2026-01-01Z', '2026-01-02Z', 10)",
        &[&action],
    );
    assert_eq!(sneaked, None);
    let mut reader = cluster.session_as("run_reader", "run_roles");
    for statement in [
        format!("SELECT recur.trigger('{action}')"),
        "SELECT recur.enqueue('p', 't')".to_owned(),
        "SELECT recur.receive('p', 't', '')".to_owned(),
        "SELECT recur.tick()".to_owned(),
    ] {
        assert_eq!(reader.error(&statement).0, "42501", "{statement}");
    }
}
