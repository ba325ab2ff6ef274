//! When a new action runs first: create, preview and a NOTICE agree.

use pg_recur_tests::Cluster;
use pg_recur_tests::Session;
use uuid::Uuid;

/// Schedules that are counted from their start, with the distance to the second run.
const FROM_START: [(&str, &str); 4] = [
    ("30 minutes", "30 minutes"),
    ("1mo", "1 month"),
    ("RRULE:FREQ=WEEKLY", "7 days"),
    (r#"{"every": 2, "unit": "day"}"#, "2 days"),
];

/// The first two occurrences that preview shows, as offsets from an instant.
fn previewed(session: &mut Session, schedule: &str) -> Vec<String> {
    session.texts(
        "SELECT (occurrence - '2099-01-05 10:00Z')::text
           FROM recur.preview($1::text, \"from\" => '2099-01-05 10:00Z', count => 2)",
        &[&schedule],
    )
}

#[test]
fn preview_and_create_agree_about_the_first_run() {
    let cluster = Cluster::quiet();
    let mut session = cluster.test_database("app");
    session.batch("SET timezone = 'UTC'; SELECT recur.set_clock('2099-01-05 10:00Z'::timestamptz)");
    for (schedule, second) in FROM_START {
        let preview = previewed(&mut session, schedule);
        let id: Uuid = session.value(
            "SELECT recur.create($1, $1, provider => 'p', action_type => 'a')",
            &[&schedule],
        );
        let created: Vec<String> = session.texts(
            "SELECT (occurrence - '2099-01-05 10:00Z')::text
               FROM recur.preview($1::uuid, \"from\" => '2099-01-05 09:59Z', count => 2)",
            &[&id],
        );
        assert_eq!(preview, created, "{schedule}");
        let first: String = session.value(
            "SELECT (next_run_at - '2099-01-05 10:00Z')::text FROM recur.get($1::uuid)",
            &[&id],
        );
        assert_eq!(first, "00:00:00", "{schedule}");
        let distance: bool = session.value(
            "SELECT '2099-01-05 10:00Z'::timestamptz + $1::text::interval
                    = '2099-01-05 10:00Z'::timestamptz + $2::text::interval",
            &[&preview[1], &second],
        );
        assert!(distance, "{schedule}: {}", preview[1]);
    }
    // With a start, and with a schedule that has no need of one, "from" itself does not count.
    assert_eq!(previewed(&mut session, "0 10 * * *"), ["1 day", "2 days"]);
    let started = session.texts(
        "SELECT occurrence::text FROM recur.preview('1d', \"from\" => '2099-01-05 10:00Z', count => 1,
                                                    starts_at => '2099-01-05 10:00Z')",
        &[],
    );
    assert_eq!(started, ["2099-01-06 10:00:00+00"]);
    let notes: Vec<Option<String>> = session.column(
        "SELECT note FROM recur.preview('1d', \"from\" => '2099-01-05 10:00Z', count => 2)",
        &[],
    );
    assert_eq!(
        notes,
        [
            Some("the moment of creation: without starts_at the first run is at once".to_owned()),
            None
        ]
    );
    // Walking from one to the next goes on.
    let next: String = session.value(
        "SELECT recur.next_occurrence('1d', \"from\" => '2099-01-05 10:00Z')::text",
        &[],
    );
    assert_eq!(next, "2099-01-06 10:00:00+00");
}

#[test]
fn create_says_that_the_first_run_is_now() {
    let cluster = Cluster::quiet();
    cluster.database("app");
    let notice = "action \"a\" runs for the first time now";
    for (call, expected) in [
        ("SELECT recur.create('a', '1mo', 'p', 't')", 1),
        ("SELECT recur.create('a', 'RRULE:FREQ=DAILY', 'p', 't')", 1),
        (
            "INSERT INTO recur.recurring_actions (name, schedule, provider, action_type) VALUES ('a', '2h', 'p', 't')",
            1,
        ),
        (
            "SELECT recur.create('a', '1mo', 'p', 't', starts_at => now() + interval '1 month')",
            0,
        ),
        (
            "SELECT recur.create('a', '1mo', 'p', 't', enabled => false)",
            0,
        ),
        ("SELECT recur.create('a', '@monthly', 'p', 't')", 0),
    ] {
        let said = cluster.run_script("app", &format!("BEGIN; {call}; ROLLBACK;"));
        assert_eq!(said.matches(notice).count(), expected, "{call}: {said}");
        let hint = "Give starts_at for a first run at another time.";
        assert_eq!(said.matches(hint).count(), expected, "{call}: {said}");
    }
    // Not a thousand times.
    let said = cluster.run_script(
        "app",
        "SELECT recur.create('b' || i, '1h', 'p', 't') FROM generate_series(1, 1000) AS i;",
    );
    assert_eq!(said.matches("runs for the first time now").count(), 10);
    assert_eq!(
        said.matches("more of the actions of this statement")
            .count(),
        1
    );
}

#[test]
fn the_event_of_a_disabled_action_names_no_next_run() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.create('off', '@daily', 'p', 't', enabled => false);
         SELECT recur.create('on', '@daily', 'p', 't')",
    );
    let named: Vec<bool> = session.column(
        "SELECT detail ? 'next_run_at' FROM recur.events WHERE kind = 'action.created' ORDER BY id",
        &[],
    );
    assert_eq!(named, [false, true]);
}
