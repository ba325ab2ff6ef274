//! Messages to the contacts of actions: when, to whom, and what they say.

use pg_recur_tests::queue::{claim_this, idle_action, queue_for};
use pg_recur_tests::{Cluster, Session};
use serde_json::Value;
use uuid::Uuid;

fn set_clock(session: &mut Session, time: &str) {
    session.batch(&format!("SELECT recur.set_clock('2040-01-01 {time}+00')"));
}

fn run(session: &mut Session, action: Uuid, error: Option<&str>) -> Uuid {
    let id = queue_for(session, action);
    claim_this(session, id);
    match error {
        Some(error) => session.execute("SELECT recur.fail($1, 1, $2, false)", &[&id, &error]),
        None => session.execute("SELECT recur.complete($1, 1)", &[&id]),
    };
    id
}

/// Messages to contacts, oldest first: kind and detail.
fn messages(session: &mut Session) -> Vec<(String, Value)> {
    let rows = session.rows(
        "SELECT kind, detail FROM recur.events WHERE kind IN ('owner.notified', 'action.resolved') ORDER BY id",
        &[],
    );
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn count(session: &mut Session) -> usize {
    messages(session).len()
}

#[test]
fn the_contact_is_notified_at_the_threshold_reminded_and_notified_of_the_end() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, ", contact => 'ops@example.com'");
    let expected = [
        ("08:00", Some("a"), 0),
        ("08:01", Some("b"), 0),
        ("08:02", Some("c"), 1),
        // Within the hour there is no reminder, then there is one.
        ("08:30", Some("d"), 1),
        ("09:01", Some("e"), 1),
        ("09:02", Some("f"), 2),
        ("09:03", Some("g"), 2),
        ("09:04", None, 3),
        // The next streak is another one.
        ("09:05", Some("h"), 3),
        ("09:05", Some("i"), 3),
        ("09:06", None, 3),
        ("09:07", Some("j"), 3),
        ("09:08", Some("k"), 3),
        ("09:09", Some("l"), 4),
    ];
    for (time, error, number) in expected {
        set_clock(&mut session, time);
        run(&mut session, action, error);
        assert_eq!(count(&mut session), number, "{time}");
    }
    let all = messages(&mut session);
    let kinds: Vec<&str> = all.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "owner.notified",
            "owner.notified",
            "action.resolved",
            "owner.notified"
        ]
    );
    let text =
        |number: usize, key: &str| all[number].1[key].as_str().unwrap_or_default().to_owned();
    assert_eq!(text(0, "problem"), "3 dispatches in a row have failed");
    assert_eq!(text(1, "problem"), "6 dispatches in a row have failed");
    assert_eq!(
        (text(1, "error"), text(1, "since")),
        ("f".into(), "2040-01-01T08:00:00Z".into())
    );
    assert_eq!(
        text(2, "problem"),
        "the action runs again, after it had failed 7 times in a row"
    );
    assert_eq!(
        (text(2, "contact"), text(2, "error")),
        ("ops@example.com".into(), "g".into())
    );
    let last: String = session.value(
        "SELECT (last_notified_at AT TIME ZONE 'UTC')::text FROM recur.recurring_actions",
        &[],
    );
    assert_eq!(last, "2040-01-01 09:09:00");
}

#[test]
fn threshold_and_mute_interval_are_the_actions_own() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let first = idle_action(
        &mut session,
        ", error_threshold => 1, mute_interval => '10 minutes'",
    );
    let muted = idle_action(&mut session, ", error_threshold => 1, mute => true");
    for (time, expected) in [("08:00", 1), ("08:09", 1), ("08:10", 2)] {
        set_clock(&mut session, time);
        run(&mut session, first, Some("x"));
        run(&mut session, muted, Some("x"));
        assert_eq!(count(&mut session), expected, "{time}");
    }
    // The interval holds for the next streak as well; the end is always news.
    set_clock(&mut session, "08:11");
    run(&mut session, first, None);
    run(&mut session, muted, None);
    assert_eq!(count(&mut session), 3);
    run(&mut session, first, Some("x"));
    assert_eq!(count(&mut session), 3);
    // Of a streak that the contact knows nothing of, neither the end.
    run(&mut session, first, None);
    assert_eq!(count(&mut session), 3);
}

#[test]
fn the_message_says_what_somebody_needs_who_is_woken_by_it() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.set_setting('error_threshold', '1');
         SELECT recur.set_setting('link_template', 'https://ops.example/actions/{id}')",
    );
    set_clock(&mut session, "08:00");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur_events");
    let action: Uuid = session.value(
        "SELECT recur.create('nightly \"report\"', 'at 2099-01-01T00:00:00', 'test', 'noop',
                             contact => 'ops@example.com')",
        &[],
    );
    let id = run(&mut session, action, Some("disk full"));
    let (_, detail) = messages(&mut session).remove(0);
    assert_eq!(
        detail["message"],
        format!(
            "Action \"nightly \"report\"\" ({action}): 1 dispatch in a row has failed, since 2040-01-01T08:00:00Z. The \
             last error: disk full\nrecur.history('{action}') shows the dispatches with their errors. recur.retry \
             repeats one, recur.pause('{action}') stops the action.\nhttps://ops.example/actions/{action}"
        )
    );
    assert_eq!(
        detail["link"],
        format!("https://ops.example/actions/{action}")
    );
    // Listeners hear ids; neither people nor errors.
    let heard: String = listener
        .waiting_notifications()
        .iter()
        .map(Value::to_string)
        .collect();
    assert!(heard.contains("owner.notified"), "{heard}");
    for secret in ["ops@example.com", "disk full", "nightly"] {
        assert!(!heard.contains(secret), "{heard}");
    }
    // Why was I notified? The dispatch says so.
    let explained: String = session.value(
        "SELECT e.explanation FROM recur.dispatches AS d, recur.explain(d.action_id, d.scheduled_at) AS e
          WHERE d.id = $1",
        &[&id],
    );
    assert!(
        explained.contains("ops@example.com was notified at")
            && explained.contains("1 dispatch in a row has failed"),
        "{explained}"
    );
}

#[test]
fn without_a_contact_the_namespaces_or_the_owner_is_notified() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.set_setting('error_threshold', '1');
         SELECT recur.set_setting('default_contact', 'billing-team', namespace => 'billing')",
    );
    for (more, expected) in [
        ("", "postgres"),
        (", namespace => 'billing'", "billing-team"),
        (", namespace => 'billing', contact => 'jo'", "jo"),
    ] {
        let action = idle_action(&mut session, more);
        run(&mut session, action, Some("x"));
        let (_, detail) = messages(&mut session).pop().expect("a message");
        assert_eq!(detail["contact"], expected, "{more}");
    }
}

#[test]
fn an_action_that_can_be_dispatched_again_is_over_too() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.set_setting('error_threshold', '2');
         SELECT recur.set_clock('2040-01-01 00:00+00');
         ALTER TABLE recur_internal.live_dispatches ADD CONSTRAINT curse CHECK (action_type <> 'cursed');
         SELECT recur.create('a', '@hourly', 'p', 'cursed')",
    );
    for (time, expected) in [("01:00", 0), ("01:10", 1), ("01:30", 1)] {
        set_clock(&mut session, time);
        assert_eq!(session.tick(&format!("2040-01-01 {time}+00")).3, 1);
        assert_eq!(count(&mut session), expected, "{time}");
    }
    session.batch("ALTER TABLE recur_internal.live_dispatches DROP CONSTRAINT curse");
    set_clock(&mut session, "02:40");
    assert_eq!(session.tick("2040-01-01 02:40+00").0, 1);
    let (kind, detail) = messages(&mut session).pop().expect("a message");
    assert_eq!(kind, "action.resolved");
    assert_eq!(
        detail["problem"],
        "the action runs again, after it had failed 3 times in a row"
    );
}
