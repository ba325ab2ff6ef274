//! Dispatches that no schedule asked for: trigger, backfill, enqueue, receive.

use chrono::{DateTime, Utc};
use pg_recur_tests::timers::set_due;
use pg_recur_tests::{Cluster, Session};
use serde_json::{Value, json};
use uuid::Uuid;

fn create(session: &mut Session, name: &str, more: &str) -> Uuid {
    session.value(
        &format!("SELECT recur.create($1, '@hourly', 'p', 't', payload => '{{\"n\": 1}}'{more})"),
        &[&name],
    )
}

#[test]
fn trigger_dispatches_now_and_leaves_the_schedule_alone() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "a", ", metadata => '{\"k\": \"v\"}'");
    let before = session.texts("SELECT (t.*)::text FROM recur_internal.timers AS t", &[]);
    let id: Uuid = session.value("SELECT recur.trigger($1::uuid)", &[&action]);
    let row = &session.rows(
        "SELECT payload, trigger, metadata FROM recur.dispatches WHERE id = $1",
        &[&id],
    )[0];
    assert_eq!(row.get::<_, Value>(0), json!({"n": 1}));
    assert_eq!(row.get::<_, String>(1), "manual");
    assert_eq!(
        row.get::<_, Value>(2),
        json!({"k": "v", "_recurring_dispatch": "true", "_recurring_id": action.to_string()})
    );
    let other: Uuid = session.value("SELECT recur.trigger($1::uuid, '{\"n\": 2}')", &[&action]);
    let payload: Value = session.value(
        "SELECT payload FROM recur.dispatches WHERE id = $1",
        &[&other],
    );
    assert_eq!(payload, json!({"n": 2}));
    session.execute("SELECT recur.pause($1::uuid)", &[&action]);
    session.execute("SELECT recur.trigger($1::uuid)", &[&action]);
    session.execute("SELECT recur.resume($1::uuid)", &[&action]);
    assert_eq!(
        session.texts("SELECT (t.*)::text FROM recur_internal.timers AS t", &[]),
        before
    );
    assert_eq!(
        session.count("recur.claim(10)"),
        3,
        "each is a dispatch of its own"
    );

    session.assert_error(
        &format!("SELECT recur.trigger('{action}', '[1]')"),
        "22023",
        "invalid payload \"[1]\": must be a JSON object",
    );
    session.assert_error(
        &format!("SELECT recur.trigger('{}')", Uuid::nil()),
        "P0002",
        &format!("no action has the id {}", Uuid::nil()),
    );
}

#[test]
fn backfill_makes_up_for_what_has_no_dispatch() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "a", ", starts_at => '2026-01-01 00:30Z'");
    // One of them has run, one is pending.
    set_due(&mut session, "'2026-01-01 03:00Z'", "");
    session.tick("2026-01-01 03:00Z");
    session.batch("SELECT recur.complete(id, attempt) FROM recur.claim(1)");
    session.tick("2026-01-01 04:00Z");
    let backfill = |session: &mut Session, from: &str, until: &str, limit: i32| -> Vec<String> {
        let made = session.rows(
            "SELECT dispatch_id, scheduled_at
               FROM recur.backfill($1::uuid, $2::text::timestamptz, $3::text::timestamptz, $4)",
            &[&action, &from, &until, &limit],
        );
        let shown = made.iter().map(|row| {
            let (id, scheduled_at): (Uuid, DateTime<Utc>) = (row.get(0), row.get(1));
            session.value(
                "SELECT to_char(scheduled_at AT TIME ZONE 'UTC', 'HH24:MI') || ' ' || trigger
                   FROM recur.dispatches WHERE id = $1 AND scheduled_at = $2",
                &[&id, &scheduled_at],
            )
        });
        shown.collect()
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
    let unchanged: bool = session.value(
        "SELECT next_run_at = '2026-01-01 05:00Z' AND last_run_at = '2026-01-01 04:00Z' AND run_count = 4
           FROM recur.recurring_actions",
        &[],
    );
    assert!(unchanged, "the schedule goes on as it was");
    let ids: bool = session.value(
        "SELECT bool_and(id = recur_internal.dispatch_id(action_id, scheduled_at)) FROM recur.dispatches",
        &[],
    );
    assert!(ids);
    for (arguments, message) in [
        (
            "'2026-01-02Z', '2026-01-01Z'",
            "invalid until \"2026-01-01 00:00:00+00\": must not lie before \"from\", which is \"2026-01-02 \
             00:00:00+00\"",
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
        session.assert_error(
            &format!("SELECT recur.backfill('{action}', {arguments})"),
            "22023",
            message,
        );
    }
}

#[test]
fn backfill_reaches_beyond_a_page() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action: Uuid = session.value(
        "SELECT recur.create('a', '* * * * *', 'p', 't', starts_at => '2026-01-01Z')",
        &[],
    );
    let made = |session: &mut Session, limit: i32| -> i64 {
        session.value(
            "SELECT count(*) FROM recur.backfill($1::uuid, '2026-01-01Z', '2026-01-02Z', $2)",
            &[&action, &limit],
        )
    };
    assert_eq!(made(&mut session, 1_200), 1_200);
    assert_eq!(made(&mut session, 1_200), 241);
}

#[test]
fn a_cron_action_is_backfilled_to_before_its_creation() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    create(&mut session, "a", "");
    assert_eq!(
        session.count("recur.recurring_actions WHERE starts_at IS NULL"),
        1
    );
    let made: Vec<String> = session.texts(
        "SELECT to_char(scheduled_at AT TIME ZONE 'UTC', 'HH24:MI')
           FROM recur.backfill('a', '2020-01-01 00:30Z', '2020-01-01 03:00Z')",
        &[],
    );
    assert_eq!(made, ["01:00", "02:00", "03:00"]);
    assert_eq!(
        session.count("recur.dispatches WHERE trigger = 'backfill'"),
        3
    );
    // An interval is counted from its creation, and has no earlier occurrence.
    session.batch("SELECT recur.create('b', '1h', 'p', 't')");
    assert_eq!(
        session.count(
            "recur.recurring_actions WHERE name = 'b' AND starts_at = created_at AND next_run_at = starts_at"
        ),
        1
    );
    assert_eq!(
        session.count("recur.backfill('b', '2020-01-01Z', '2020-01-02Z')"),
        0
    );
}

#[test]
fn a_backfill_that_yields_nothing_says_why() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    create(
        &mut session,
        "started",
        ", starts_at => '2026-01-01 00:30Z'",
    );
    create(&mut session, "cron", "");
    let backfill = |action: &str, from: &str, until: &str| {
        let script = format!("SELECT recur.backfill('{action}', '{from}', {until})");
        cluster.run_script("app", &script)
    };
    let said = backfill("cron", "2026-01-01 01:00Z", "'2026-01-01 02:00Z'");
    assert_eq!(said, "", "two occurrences are made up for");
    for (action, from, until, reason) in [
        (
            "cron",
            "2026-01-01 01:00Z",
            "'2026-01-01 02:00Z'",
            "all 2 occurrences have a dispatch already",
        ),
        (
            "cron",
            "2026-01-01 01:01Z",
            "'2026-01-01 01:59Z'",
            "the schedule has no occurrence then",
        ),
        (
            "started",
            "2025-01-01Z",
            "'2025-06-01Z'",
            "the action starts only at 2026-01-01T00:30:00Z",
        ),
    ] {
        let said = backfill(action, from, until);
        let expected = format!("NOTICE:  nothing to backfill: {reason}\n");
        assert!(said.contains(&expected), "{said}");
    }
    set_due(&mut session, "'2026-01-01 03:00Z'", "");
    let said = backfill("cron", "2026-01-01 03:00Z", "now()");
    assert!(
        said.contains("from 2026-01-01T03:00:00Z on, the schedule itself dispatches"),
        "{said}"
    );
}
