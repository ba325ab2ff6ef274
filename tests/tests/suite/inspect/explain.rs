//! Why did it fire, or not? Every verdict of `recur.explain`.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use pg_recur_tests::{Cluster, Session};
use uuid::Uuid;

/// (verdict, explanation, has a dispatch, has an event)
fn explain(session: &mut Session, action: Uuid, at: DateTime<Utc>) -> (String, String, bool, bool) {
    let row = &session.rows(
        "SELECT verdict, explanation, dispatch_id IS NOT NULL, event_id IS NOT NULL FROM recur.explain($1::uuid, $2)",
        &[&action, &at],
    )[0];
    (row.get(0), row.get(1), row.get(2), row.get(3))
}

/// An hourly action that has been there for long, and is due from `next` on.
fn create(session: &mut Session, name: &str, next: DateTime<Utc>, more: &str) -> Uuid {
    let action: Uuid = session.value(
        &format!("SELECT recur.create($1, '1h', 'p', 't', starts_at => $2{more})"),
        &[&name, &hours_ago(1_000)],
    );
    session.execute(
        "UPDATE recur_internal.definitions SET created_at = $1",
        &[&hours_ago(900)],
    );
    session.execute(
        "UPDATE recur_internal.timers SET next_run_at = $2, due_at = $2 WHERE action_id = $1",
        &[&action, &next],
    );
    action
}

/// An occurrence: the last one was half an hour before this test, whatever the time of day, and the next one is half
/// an hour away.
fn hours_ago(hours: i64) -> DateTime<Utc> {
    thread_local! {
        static LAST: DateTime<Utc> = (Utc::now() - TimeDelta::minutes(30)).trunc_subsecs(0);
    }
    LAST.with(|last| *last - TimeDelta::hours(hours))
}

#[test]
fn an_occurrence_is_fired_skipped_due_to_come_or_never_existed() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SET timezone = 'UTC'");
    let action = create(&mut session, "a", hours_ago(5), "");
    let (verdict, words, ..) = explain(&mut session, action, hours_ago(3));
    assert_eq!(verdict, "due");
    assert_eq!(
        words,
        "it is due and not dispatched yet; recur.doctor() tells whether something keeps the workers from it"
    );

    session.batch("SELECT recur.tick()");
    let (verdict, words, dispatch, event) = explain(&mut session, action, hours_ago(0));
    assert_eq!((verdict.as_str(), dispatch, event), ("fired", true, false));
    assert!(
        words.starts_with("dispatched by schedule ") && words.ends_with(" late; it is pending"),
        "{words}"
    );
    session.batch("SELECT recur.fail(id, attempt, 'no luck', false) FROM recur.claim(1)");
    let (_, words, ..) = explain(&mut session, action, hours_ago(0));
    assert!(
        words.ends_with("it is failed after 1 attempt(s): no luck"),
        "{words}"
    );

    let (verdict, words, dispatch, event) = explain(&mut session, action, hours_ago(3));
    assert_eq!(
        (verdict.as_str(), dispatch, event),
        ("skipped", false, true)
    );
    assert!(
        words.starts_with(
            "it was missed, and by the misfire policy it was not made up for (one of 5, from "
        ),
        "{words}"
    );
    let (verdict, words, ..) = explain(&mut session, action, hours_ago(-1));
    assert_eq!(
        (verdict.as_str(), words.as_str()),
        ("to come", "it is the next one")
    );
    let (verdict, words, ..) = explain(&mut session, action, hours_ago(-7));
    assert_eq!(verdict, "to come");
    assert!(words.starts_with("the next one is at "), "{words}");
    let (verdict, words, ..) = explain(&mut session, action, hours_ago(2) + TimeDelta::minutes(1));
    assert_eq!(verdict, "never existed");
    assert!(
        words.contains(" has no occurrence then; the one before is ")
            && words.contains("; the one after is "),
        "{words}"
    );
    let (verdict, words, ..) = explain(&mut session, action, hours_ago(2_000));
    assert_eq!(verdict, "never existed");
    let start: String = session.value(
        "SELECT starts_at::text FROM recur.get($1::uuid)",
        &[&action],
    );
    assert_eq!(words, format!("the action starts only at {start}"));

    session.assert_error(
        &format!("SELECT recur.explain('{action}', NULL)"),
        "22023",
        "invalid at \"NULL\": must have a value",
    );
    assert_eq!(
        session
            .error(&format!("SELECT recur.explain('{}', now())", Uuid::nil()))
            .0,
        "P0002"
    );
}

#[test]
fn outside_of_its_bounds_the_bound_is_the_reason() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SET timezone = 'UTC';
         SELECT recur.create('a', '0 9 * * *', 'p', 't', starts_at => '2099-01-01 12:00Z',
                             ends_at => '2099-01-04 12:00Z')",
    );
    for (at, expected) in [
        (
            "2098-12-31 09:00Z",
            "the action starts only at 2099-01-01 12:00:00+00; its first occurrence is 2099-01-02 09:00:00+00",
        ),
        (
            "2099-01-05 09:00Z",
            "the action ended at 2099-01-04 12:00:00+00; its last occurrence was 2099-01-04 09:00:00+00",
        ),
        (
            "2099-01-03 10:00Z",
            "at 09:00, UTC has no occurrence then; the one before is 2099-01-03 09:00:00+00; the one after is \
             2099-01-04 09:00:00+00",
        ),
    ] {
        let row = &session.rows(
            "SELECT verdict, explanation FROM recur.explain('a', $1::text::timestamptz)",
            &[&at],
        )[0];
        let (verdict, words): (String, String) = (row.get(0), row.get(1));
        assert_eq!(
            (verdict.as_str(), words.as_str()),
            ("never existed", expected)
        );
    }
}

#[test]
fn an_occurrence_that_was_dispatched_ahead_is_to_come() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "a", hours_ago(-1), ", horizon => '3 hours'");
    session.batch("UPDATE recur_internal.timers SET due_at = now(); SELECT recur.tick()");
    let (verdict, words, dispatch, _) = explain(&mut session, action, hours_ago(-2));
    assert_eq!((verdict.as_str(), dispatch), ("to come", true));
    assert_eq!(
        words,
        "dispatched by schedule ahead of its time; it is pending"
    );
}

#[test]
fn an_overlap_is_named() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "a", hours_ago(2), ", overlap => 'skip'");
    session.tick(&(hours_ago(2)).to_rfc3339());
    session.tick(&(hours_ago(1)).to_rfc3339());
    let (verdict, words, _, event) = explain(&mut session, action, hours_ago(1));
    assert_eq!((verdict.as_str(), event), ("skipped", true));
    assert_eq!(
        words,
        "an earlier dispatch was unfinished, and by the overlap policy it gave way; one that waits for its retry \
         counts for an hour after its occurrence"
    );
}

#[test]
fn a_pause_is_named_while_it_lasts_and_afterwards() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "a", hours_ago(5), "");
    session.execute("SELECT recur.pause($1::uuid, 'holidays')", &[&action]);
    let (verdict, words, ..) = explain(&mut session, action, hours_ago(3));
    assert_eq!(
        (verdict.as_str(), words.as_str()),
        ("skipped", "the action is paused: holidays")
    );
    let (verdict, words, ..) = explain(&mut session, action, hours_ago(-3));
    assert_eq!(verdict, "to come");
    assert_eq!(
        words,
        "the action is paused: holidays; unless it is resumed before, nothing fires"
    );

    session.execute("SELECT recur.resume($1::uuid)", &[&action]);
    let (verdict, words, _, event) = explain(&mut session, action, hours_ago(3));
    assert_eq!((verdict.as_str(), event), ("skipped", true));
    assert!(
        words.starts_with("the action was paused (one of 6, from "),
        "{words}"
    );
    let detail: String = session.value(
        "SELECT concat_ws(' ', detail ->> 'reason', (detail ->> 'from')::timestamptz = $1,
                          (detail ->> 'until')::timestamptz = $2, detail ->> 'count')
           FROM recur.events WHERE kind = 'occurrence.skipped'",
        &[&hours_ago(5), &hours_ago(0)],
    );
    assert_eq!(detail, "paused t t 6");
}

#[test]
fn errors_are_named_and_so_is_what_was_missed_meanwhile() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "a", hours_ago(2), "");
    session.batch(
        "ALTER TABLE recur_internal.live_dispatches ADD CONSTRAINT nothing CHECK (false) NOT VALID;
         SELECT recur.tick()",
    );
    let (verdict, words, ..) = explain(&mut session, action, hours_ago(1));
    assert_eq!(verdict, "due");
    assert_eq!(
        words,
        "it is due, but could not be dispatched: new row for relation \"live_dispatches\" violates check constraint \
         \"nothing\" (SQLSTATE 23514)"
    );
    session.batch(
        "UPDATE recur_internal.timers SET error_count = 9, due_at = now(); SELECT recur.tick()",
    );
    let (verdict, words, ..) = explain(&mut session, action, hours_ago(1));
    assert_eq!(verdict, "skipped");
    assert!(
        words.starts_with("the action is paused: 10 errors in a row, the last: new row"),
        "{words}"
    );
    session.batch("ALTER TABLE recur_internal.live_dispatches DROP CONSTRAINT nothing");
    session.execute("SELECT recur.resume($1::uuid)", &[&action]);
    let (verdict, _, _, event) = explain(&mut session, action, hours_ago(1));
    assert_eq!(
        (verdict.as_str(), event),
        ("skipped", true),
        "what it missed while it was paused is named"
    );
}

#[test]
fn there_are_no_occurrences_before_the_creation_and_after_the_end() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action: Uuid = session.value(
        "SELECT recur.create('young', '1h', 'p', 't', starts_at => $1)",
        &[&hours_ago(1_000)],
    );
    let (verdict, words, ..) = explain(&mut session, action, hours_ago(3));
    assert_eq!(verdict, "never existed");
    assert!(
        words.starts_with("the action was created later, at "),
        "{words}"
    );
    session.execute("SELECT recur.delete($1::uuid)", &[&action]);

    let ended = create(&mut session, "ended", hours_ago(0), ", max_runs => 1");
    session.batch("SELECT recur.tick()");
    let (verdict, words, ..) = explain(&mut session, ended, hours_ago(-1));
    assert_eq!(
        (verdict.as_str(), words.as_str()),
        ("never existed", "the action has ended: exhausted")
    );
    let (verdict, ..) = explain(&mut session, ended, hours_ago(0));
    assert_eq!(verdict, "fired");
}

#[test]
fn a_reschedule_is_named() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "a", hours_ago(1), "");
    session.execute(
        "SELECT recur.update($1::uuid, '{\"schedule\": \"7h\"}')",
        &[&action],
    );
    let (verdict, words, _, event) = explain(&mut session, action, hours_ago(1));
    assert_eq!((verdict.as_str(), event), ("never existed", true));
    assert!(
        words.contains("; but it was rescheduled at ") && words.contains("\"schedule\": "),
        "{words}"
    );
    // An occurrence of the new schedule before the edit.
    let (verdict, words, _, event) = explain(&mut session, action, hours_ago(6));
    assert_eq!((verdict.as_str(), event), ("skipped", true));
    assert!(words.starts_with("action was updated at "), "{words}");
}

#[test]
fn what_is_no_longer_kept_is_unknown() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "a", hours_ago(4), ", keep_history => 'none'");
    session.tick(&(hours_ago(4)).to_rfc3339());
    session.batch("SELECT recur.complete(id, attempt) FROM recur.claim(1)");
    let (verdict, words, ..) = explain(&mut session, action, hours_ago(4));
    assert_eq!(verdict, "unknown");
    assert!(
        words.starts_with("its dispatch or its event is no longer kept"),
        "{words}"
    );
}
