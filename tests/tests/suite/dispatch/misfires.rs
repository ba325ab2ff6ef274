//! What was missed, what overlaps, what is delayed: every policy through `recur.tick`, with a clock of its own.

use pg_recur_tests::timers::set_due;
use pg_recur_tests::{Cluster, Session};
use uuid::Uuid;

/// An action that is due first at midnight of 1 January 2030.
fn create(session: &mut Session, name: &str, schedule: &str, more: &str) -> Uuid {
    session.value(
        &format!("SELECT recur.create($1, $2, 'p', 't', starts_at => '2030-01-01Z'{more})"),
        &[&name, &schedule],
    )
}

fn occurrences(session: &mut Session, action: Uuid) -> Vec<String> {
    session.texts(
        "SELECT to_char(scheduled_at AT TIME ZONE 'UTC', 'DD HH24:MI') FROM recur.dispatches WHERE action_id = $1
          ORDER BY scheduled_at",
        &[&action],
    )
}

fn skipped(session: &mut Session, action: Uuid) -> Vec<String> {
    session.texts(
        "SELECT concat_ws(' ', detail ->> 'reason', detail ->> 'from', detail ->> 'until', detail ->> 'count')
           FROM recur.events WHERE action_id = $1 AND kind = 'occurrence.skipped' ORDER BY id",
        &[&action],
    )
}

#[test]
fn once_fires_the_latest_and_names_the_rest() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "a", "* * * * *", "");
    assert_eq!(session.tick("2030-01-31 00:00:30Z"), (1, 43_200, 0, 0));
    assert_eq!(occurrences(&mut session, action), ["31 00:00"]);
    assert_eq!(
        skipped(&mut session, action),
        ["misfire 2030-01-01T00:00:00Z 2030-01-30T23:59:00Z 43200"]
    );
    // With a grace, not even the latest if it is older.
    let strict = create(
        &mut session,
        "strict",
        "@hourly",
        ", misfire_grace => '10 minutes'",
    );
    session.execute("SELECT recur.delete($1::uuid)", &[&action]);
    assert_eq!(session.tick("2030-01-01 02:11:00Z"), (0, 3, 0, 0));
    assert_eq!(
        skipped(&mut session, strict),
        ["misfire 2030-01-01T00:00:00Z 2030-01-01T02:00:00Z 3"]
    );
    assert_eq!(session.tick("2030-01-01 03:10:00Z"), (1, 0, 0, 0));
}

#[test]
fn skip_fires_the_latest_if_it_is_young_enough() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let usual = create(&mut session, "usual", "* * * * *", ", misfire => 'skip'");
    let patient = create(
        &mut session,
        "patient",
        "* * * * *",
        ", misfire => 'skip', misfire_grace => '150 seconds'",
    );
    let late = create(
        &mut session,
        "late",
        "* * * * *",
        ", misfire => 'skip', misfire_grace => '29 seconds'",
    );
    assert_eq!(
        session.tick("2030-01-01 00:10:30Z"),
        (2, 10 + 10 + 11, 0, 0)
    );
    for action in [usual, patient] {
        assert_eq!(occurrences(&mut session, action), ["01 00:10"]);
        assert_eq!(
            skipped(&mut session, action),
            ["misfire 2030-01-01T00:00:00Z 2030-01-01T00:09:00Z 10"]
        );
    }
    assert_eq!(
        skipped(&mut session, late),
        ["misfire 2030-01-01T00:00:00Z 2030-01-01T00:10:00Z 11"]
    );
}

#[test]
fn the_grace_of_skip_is_in_the_row() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let grace = |session: &mut Session| -> Option<String> {
        session.value(
            "SELECT misfire_grace::text FROM recur.recurring_actions WHERE name = 'a'",
            &[],
        )
    };
    create(&mut session, "a", "@hourly", "");
    assert_eq!(grace(&mut session), None);
    for (change, expected) in [
        (r#"{"misfire": "skip"}"#, Some("00:01:00")),
        (r#"{"misfire_grace": "1 hour"}"#, Some("01:00:00")),
        (r#"{"misfire_grace": null}"#, Some("00:01:00")),
        (r#"{"misfire": "once"}"#, None),
    ] {
        session.execute("SELECT recur.update('a', $1::text::jsonb)", &[&change]);
        assert_eq!(grace(&mut session).as_deref(), expected, "{change}");
    }
    session.batch(
        "INSERT INTO recur.recurring_actions (name, schedule, provider, action_type, misfire)
         VALUES ('b', '@hourly', 'p', 't', 'skip')",
    );
    assert_eq!(
        session.count("recur.recurring_actions WHERE name = 'b' AND misfire_grace = '1 minute'"),
        1
    );
}

#[test]
fn all_fires_the_newest_of_an_outage() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(
        &mut session,
        "a",
        "* * * * *",
        ", misfire => 'all', catchup_limit => 7",
    );
    assert_eq!(session.tick("2030-01-01 00:29:30Z"), (7, 23, 0, 0));
    let expected: Vec<String> = (23..30)
        .map(|minute| format!("01 00:{minute:02}"))
        .collect();
    assert_eq!(occurrences(&mut session, action), expected);
    assert_eq!(
        skipped(&mut session, action),
        ["misfire 2030-01-01T00:00:00Z 2030-01-01T00:22:00Z 23"]
    );
    let advanced: bool = session.value(
        "SELECT run_count = 7 AND last_run_at = '2030-01-01 00:29Z' AND next_run_at = '2030-01-01 00:30Z'
           FROM recur.recurring_actions",
        &[],
    );
    assert!(advanced);
}

#[test]
fn all_drops_once_in_an_outage_of_several_batches() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(
        &mut session,
        "a",
        "* * * * * *",
        ", misfire => 'all', catchup_limit => 2500",
    );
    // An hour of seconds.
    assert_eq!(session.tick("2030-01-01 01:00Z"), (2_500, 1_101, 0, 0));
    assert_eq!(
        skipped(&mut session, action),
        ["misfire 2030-01-01T00:00:00Z 2030-01-01T00:18:20Z 1101"]
    );
    // A portion is a statement: what one statement inserts was written under one subtransaction.
    let portions: Vec<String> = session.texts(
        "SELECT count(*)::text FROM recur_internal.live_dispatches GROUP BY xmin::text ORDER BY min(scheduled_at)",
        &[],
    );
    assert_eq!(portions, ["1000", "1000", "500"]);
}

#[test]
fn an_action_ends_with_its_reason() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let counted = create(&mut session, "counted", "@hourly", ", max_runs => 2");
    let ending = create(
        &mut session,
        "ending",
        "@hourly",
        ", ends_at => '2030-01-01 01:00Z'",
    );
    let once = create(&mut session, "once", "at 2030-01-01T00:30:00", "");
    // The one exactly at its end is seen late, and fires.
    assert_eq!(session.tick("2030-01-01 00:00:00Z"), (2, 0, 0, 0));
    assert_eq!(session.tick("2030-01-01 05:00:00Z"), (3, 4, 3, 0));
    assert_eq!(occurrences(&mut session, ending), ["01 00:00", "01 01:00"]);
    assert_eq!(occurrences(&mut session, counted), ["01 00:00", "01 05:00"]);
    for (action, reason, kind) in [
        (counted, "exhausted", "action.exhausted"),
        (ending, "expired", "action.expired"),
        (once, "no_next", "action.no_next"),
    ] {
        let row = &session.rows(
            "SELECT enabled, next_run_at IS NULL, ended_reason FROM recur.recurring_actions WHERE id = $1",
            &[&action],
        )[0];
        let state: (bool, bool, String) = (row.get(0), row.get(1), row.get(2));
        assert_eq!(state, (false, true, reason.to_owned()));
        let events: i64 = session.value(
            "SELECT count(*) FROM recur.events WHERE action_id = $1 AND kind = $2",
            &[&action, &kind],
        );
        assert_eq!(events, 1, "{kind}");
    }
    assert_eq!(session.tick("2031-01-01Z"), (0, 0, 0, 0));
}

/// Claims the oldest dispatch and leaves it running.
/// With a lease that outlives the ticks: these are years ahead of the session's clock.
fn claim(session: &mut Session) -> (Uuid, i32) {
    let row = &session.rows(
        "SELECT id, attempt FROM recur.claim(1, lease => '10 years')",
        &[],
    )[0];
    (row.get(0), row.get(1))
}

fn statuses(session: &mut Session) -> Vec<String> {
    session.texts(
        "SELECT concat_ws(' ', to_char(scheduled_at AT TIME ZONE 'UTC', 'HH24:MI'), status,
                          CASE WHEN cancel_requested THEN 'stop' END)
           FROM recur.dispatches ORDER BY scheduled_at",
        &[],
    )
}

#[test]
fn overlap_skip_waits_for_the_one_before() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "a", "@hourly", ", overlap => 'skip'");
    assert_eq!(session.tick("2030-01-01 00:00Z"), (1, 0, 0, 0));
    assert_eq!(session.tick("2030-01-01 01:00Z"), (0, 1, 0, 0), "pending");
    let (id, attempt) = claim(&mut session);
    assert_eq!(session.tick("2030-01-01 02:00Z"), (0, 1, 0, 0), "running");
    session.execute("SELECT recur.complete($1::uuid, $2::int)", &[&id, &attempt]);
    assert_eq!(session.tick("2030-01-01 03:00Z"), (1, 0, 0, 0), "over");
    assert_eq!(
        skipped(&mut session, action),
        [
            "overlap 2030-01-01T01:00:00Z 2030-01-01T01:00:00Z 1",
            "overlap 2030-01-01T02:00:00Z 2030-01-01T02:00:00Z 1"
        ]
    );
    // An action with a context does so by itself.
    session.batch("SELECT recur.create('c', '@hourly', 'p', 't', context => '{}')");
    let overlap: String = session.value(
        "SELECT overlap FROM recur.recurring_actions WHERE name = 'c'",
        &[],
    );
    assert_eq!(overlap, "skip");
}

#[test]
fn overlap_queue_one_lets_one_wait() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    create(&mut session, "a", "@hourly", ", overlap => 'queue_one'");
    session.tick("2030-01-01 00:00Z");
    claim(&mut session);
    assert_eq!(session.tick("2030-01-01 01:00Z"), (1, 0, 0, 0));
    assert_eq!(session.tick("2030-01-01 02:00Z"), (0, 1, 0, 0));
    assert_eq!(statuses(&mut session), ["00:00 running", "01:00 pending"]);
}

#[test]
fn overlap_cancel_previous_makes_room() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    create(
        &mut session,
        "a",
        "@hourly",
        ", overlap => 'cancel_previous'",
    );
    session.tick("2030-01-01 00:00Z");
    claim(&mut session);
    assert_eq!(session.tick("2030-01-01 01:00Z"), (1, 0, 0, 0));
    assert_eq!(session.tick("2030-01-01 02:00Z"), (1, 0, 0, 0));
    assert_eq!(
        statuses(&mut session),
        ["00:00 running stop", "01:00 cancelled", "02:00 pending"]
    );
    let reason: String = session.value(
        "SELECT error FROM recur.dispatches WHERE status = 'cancelled'",
        &[],
    );
    assert_eq!(reason, "the next occurrence was due");
}

#[test]
fn overlap_cancel_previous_waits_for_no_consumer() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    create(
        &mut session,
        "a",
        "@hourly",
        ", overlap => 'cancel_previous'",
    );
    session.tick("2030-01-01 00:00Z");
    let mut consumer = cluster.session("app");
    consumer.batch("BEGIN");
    claim(&mut consumer);
    session.batch("SET lock_timeout = '10s'");
    assert_eq!(session.tick("2030-01-01 01:00Z"), (1, 0, 0, 0));
    consumer.batch("COMMIT");
    assert_eq!(statuses(&mut session), ["00:00 running", "01:00 pending"]);
}

#[test]
fn jitter_delays_each_by_its_own_fixed_part() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.create('a' || n, '@hourly', 'p', 't', jitter => '10 minutes') FROM generate_series(1, 50) AS n;
         SELECT recur.create('calm', '@hourly', 'p', 't')",
    );
    let mut delays = || {
        session.batch("UPDATE recur_internal.timers SET last_run_at = NULL");
        set_due(&mut session, "'2024-01-01 12:00Z'", "");
        assert_eq!(session.tick("2024-01-01 12:00Z").0, 51);
        let delays = session.texts(
            "SELECT extract(epoch FROM l.available_at - l.scheduled_at)::text
               FROM recur_internal.live_dispatches AS l JOIN recur_internal.definitions AS d ON d.id = l.action_id
              ORDER BY d.name",
            &[],
        );
        session.batch("DELETE FROM recur_internal.live_dispatches");
        delays
    };
    let first = delays();
    assert_eq!(first, delays(), "always the same");
    let seconds: Vec<f64> = first.iter().map(|text| text.parse().unwrap()).collect();
    assert_eq!(seconds[50], 0.0, "without jitter there is no delay");
    assert!(seconds.iter().all(|delay| (0.0..600.0).contains(delay)));
    let early = seconds[..50].iter().filter(|delay| **delay < 300.0).count();
    assert!(
        (10..40).contains(&early),
        "spread over the span: {early} of 50 in its first half"
    );
}
