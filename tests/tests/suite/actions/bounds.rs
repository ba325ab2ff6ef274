//! max_runs: which runs it counts, who keeps to it, and how an action that has ended goes on.

use pg_recur_tests::actions::{row, update};
use pg_recur_tests::{Cluster, Session, eventually};
use serde_json::{Value, json};
use uuid::Uuid;

const FIRST_DAY: &str =
    "SET timezone = 'UTC'; SELECT recur.set_clock('2099-01-01 08:00Z'::timestamptz)";

/// A daily action at nine, in a test database whose clock says eight.
fn create(session: &mut Session, more: &str) -> Uuid {
    session.batch(FIRST_DAY);
    session.value(
        &format!("SELECT recur.create('n', '0 9 * * *', 'p', 'a', max_attempts => 1{more})"),
        &[],
    )
}

/// A day later, at nine: what is due is dispatched. Returns how many dispatches that made.
fn next_day(session: &mut Session) -> i64 {
    session.batch(
        "SELECT recur.set_clock(date_trunc('day', recur.clock() + interval '15 hours') + interval '9 hours')",
    );
    session.value("SELECT dispatched FROM recur.tick()", &[])
}

fn complete(session: &mut Session) {
    session.batch("SELECT recur.complete(id, attempt) FROM recur.claim(1)");
}

fn fail(session: &mut Session) {
    session.batch("SELECT recur.fail(id, attempt, 'no luck') FROM recur.claim(1)");
}

fn state(session: &mut Session, id: Uuid) -> (bool, Option<String>, i64, i64) {
    let row = &session.rows(
        "SELECT enabled, ended_reason, run_count, completed_count FROM recur.get($1::uuid)",
        &[&id],
    )[0];
    (row.get(0), row.get(1), row.get(2), row.get(3))
}

fn exhausted() -> Option<String> {
    Some("exhausted".to_owned())
}

#[test]
fn failed_runs_do_not_count_where_completed_ones_do() {
    let cluster = Cluster::quiet();
    let mut session = cluster.test_database("app");
    let id = create(&mut session, ", max_runs => 2, count_runs => 'completed'");
    assert_eq!(next_day(&mut session), 1);
    fail(&mut session);
    assert_eq!(next_day(&mut session), 1);
    complete(&mut session);
    assert_eq!(next_day(&mut session), 1);
    fail(&mut session);
    assert_eq!(state(&mut session, id), (true, None, 3, 1));
    assert_eq!(next_day(&mut session), 1);
    complete(&mut session);
    // With the last report, not a day later.
    assert_eq!(state(&mut session, id), (false, exhausted(), 4, 2));
    assert_eq!(
        session.count("recur.events WHERE kind = 'action.exhausted'"),
        1
    );
    assert_eq!(next_day(&mut session), 0);

    // The default counts what was dispatched.
    session.batch("SELECT recur.delete('n')");
    let id = create(&mut session, ", max_runs => 2");
    assert_eq!(row(&mut session, id)["count_runs"], "dispatched");
    for _ in 0..2 {
        assert_eq!(next_day(&mut session), 1);
        fail(&mut session);
    }
    assert_eq!(state(&mut session, id), (false, exhausted(), 2, 0));
}

#[test]
fn an_unfinished_run_holds_a_place_so_that_the_cap_is_hard() {
    let cluster = Cluster::quiet();
    let mut session = cluster.test_database("app");
    let id = create(&mut session, ", max_runs => 2, count_runs => 'completed'");
    assert_eq!(next_day(&mut session), 1);
    assert_eq!(next_day(&mut session), 1);
    // Both may be completed.
    assert_eq!(next_day(&mut session), 0);
    assert_eq!(state(&mut session, id), (true, None, 2, 0));
    let skipped: Value = session.value(
        "SELECT detail FROM recur.events WHERE kind = 'occurrence.skipped'",
        &[],
    );
    assert_eq!(
        (&skipped["reason"], &skipped["count"]),
        (&json!("max_runs"), &json!(1))
    );
    let words: String = session.value(
        "SELECT explanation FROM recur.explain('n', recur.clock())",
        &[],
    );
    assert_eq!(
        words,
        "the runs under way may be the last that max_runs allows"
    );
    let refused = "action \"n\" has no run left: of its 2, 0 are completed and 2 are under way";
    session.assert_error("SELECT recur.trigger('n')", "55000", refused);
    // One fails, and its place is free.
    fail(&mut session);
    assert_eq!(next_day(&mut session), 1);
    // To be retried, it would need a place.
    let failed: Uuid = session.value(
        "SELECT id FROM recur.dispatches WHERE status = 'failed'",
        &[],
    );
    let (code, message, hint) = session.error_with("SELECT recur.retry($1)", &[&failed]);
    assert_eq!((code.as_str(), message.as_str()), ("55000", refused));
    assert_eq!(hint, "Raise max_runs first.");
    complete(&mut session);
    complete(&mut session);
    assert_eq!(state(&mut session, id), (false, exhausted(), 3, 2));
    session.assert_error(
        "SELECT recur.trigger('n')",
        "55000",
        "action \"n\" has had all of its 2 runs",
    );
    let now = update(&mut session, id, json!({"max_runs": 3}));
    assert_eq!(
        (&now["enabled"], &now["ended_reason"]),
        (&json!(true), &Value::Null)
    );
    // A trigger takes the place.
    session.batch("SELECT recur.trigger('n')");
    assert_eq!(next_day(&mut session), 0);
    complete(&mut session);
    assert_eq!(state(&mut session, id), (false, exhausted(), 3, 3));
}

#[test]
fn with_a_horizon_no_more_is_generated_than_may_be_completed() {
    let cluster = Cluster::quiet();
    let mut session = cluster.test_database("app");
    let id = create(
        &mut session,
        ", max_runs => 3, count_runs => 'completed', horizon => '10 days'",
    );
    session.batch("SELECT recur.tick()");
    assert_eq!(session.count("recur.dispatches"), 3);
    next_day(&mut session);
    fail(&mut session);
    // The next day there is a place, and the horizon is filled again.
    next_day(&mut session);
    assert_eq!(
        session.count("recur.dispatches WHERE status = 'pending'"),
        3
    );
    for _ in 0..3 {
        next_day(&mut session);
        complete(&mut session);
    }
    assert_eq!(state(&mut session, id), (false, exhausted(), 4, 3));
}

#[test]
fn two_sessions_can_not_take_the_last_place() {
    let cluster = Cluster::quiet();
    let mut session = cluster.test_database("app");
    create(&mut session, ", max_runs => 1, count_runs => 'completed'");
    session.batch("BEGIN; SELECT recur.trigger('n')");
    let mut other = cluster.session("app");
    let pid = other.pid();
    let waiting = std::thread::spawn(move || other.error("SELECT recur.trigger('n')"));
    eventually("the other session waits", || session.is_blocked(pid));
    session.batch("COMMIT");
    let (code, message, _) = waiting.join().expect("an answer");
    assert_eq!(
        (code.as_str(), message.as_str()),
        (
            "55000",
            "action \"n\" has no run left: of its 1, 0 are completed and 1 are under way"
        )
    );
}

#[test]
fn an_action_that_has_ended_goes_on_when_its_bounds_leave_it_a_run() {
    let cluster = Cluster::quiet();
    let mut session = cluster.test_database("app");
    for (bound, change, upsert) in [
        ("max_runs => 1", json!({"max_runs": 2}), "max_runs => 2"),
        (
            "max_runs => 1",
            json!({"max_runs": null}),
            "starts_at => NULL",
        ),
        (
            "ends_at => '2099-01-01 10:00Z'",
            json!({"ends_at": "2099-02-01T10:00:00Z"}),
            "ends_at => '2099-02-01 10:00Z'",
        ),
    ] {
        for by_update in [true, false] {
            let id = create(&mut session, &format!(", {bound}"));
            next_day(&mut session);
            complete(&mut session);
            let before = row(&mut session, id);
            assert_eq!(before["enabled"], false, "{bound}");
            // What leaves it no run does not.
            let same = update(&mut session, id, json!({"priority": 7}));
            assert_eq!(same["ended_reason"], before["ended_reason"]);
            match by_update {
                true => session.execute("SELECT recur.update($1::uuid, $2)", &[&id, &change]),
                false => session.execute(
                    &format!(
                        "SELECT recur.create('n', '0 9 * * *', 'p', 'a', on_existing => 'upsert', {upsert})"
                    ),
                    &[],
                ),
            };
            let after = row(&mut session, id);
            assert_eq!(
                (&after["enabled"], &after["ended_reason"]),
                (&json!(true), &Value::Null),
                "{bound} {by_update}"
            );
            assert_eq!(after["next_run_at"], "2099-01-02T09:00:00+00:00");
            assert_eq!(next_day(&mut session), 1);
            session.batch("SELECT recur.delete('n')");
        }
    }
    // A schedule that had its one time gets another one; with max_runs used up, no schedule helps.
    session.batch(FIRST_DAY);
    let id: Uuid = session.value(
        "SELECT recur.create('n', 'at 2099-01-01T09:00:00', 'p', 'a')",
        &[],
    );
    next_day(&mut session);
    assert_eq!(row(&mut session, id)["ended_reason"], "no_next");
    let after = update(
        &mut session,
        id,
        json!({"schedule": "at 2099-01-03T09:00:00"}),
    );
    assert_eq!(after["next_run_at"], "2099-01-03T09:00:00+00:00");
    let id = create(&mut session, ", max_runs => 1, subject => 's'");
    next_day(&mut session);
    let after = update(&mut session, id, json!({"schedule": "0 10 * * *"}));
    assert_eq!(
        (&after["enabled"], &after["ended_reason"]),
        (&json!(false), &json!("exhausted"))
    );
    // A paused action stays paused.
    let id = create(&mut session, ", subject => 't'");
    session.execute("SELECT recur.pause($1::uuid)", &[&id]);
    let after = update(&mut session, id, json!({"max_runs": 5}));
    assert_eq!(after["enabled"], false);
}

#[test]
fn a_backfill_counts_and_keeps_within_max_runs() {
    let cluster = Cluster::quiet();
    let mut session = cluster.test_database("app");
    let id = create(&mut session, ", max_runs => 3");
    let backfill = |session: &mut Session, more: &str| -> Vec<String> {
        session.texts(
            &format!(
                "SELECT to_char(scheduled_at, 'MM-DD')
                   FROM recur.backfill('n', '2098-12-01Z', '2098-12-31 23:00Z'{more})"
            ),
            &[],
        )
    };
    assert_eq!(
        backfill(&mut session, ", \"limit\" => 2"),
        ["12-01", "12-02"]
    );
    assert_eq!(state(&mut session, id).2, 2);
    assert_eq!(backfill(&mut session, ""), ["12-03"]);
    assert!(backfill(&mut session, "").is_empty());
    // The action has had its runs, and has ended.
    assert_eq!(state(&mut session, id), (false, exhausted(), 3, 0));
    assert_eq!(
        backfill(&mut session, ", \"limit\" => 2, beyond_max_runs => true"),
        ["12-04", "12-05"]
    );
    let said = cluster.run_script(
        "app",
        "SELECT recur.backfill('n', '2098-12-01Z', '2098-12-31 23:00Z');
         SELECT recur.update('n', '{\"max_runs\": 7}');
         SELECT recur.backfill('n', '2098-12-01Z', '2098-12-31 23:00Z');",
    );
    assert!(
        said.contains("nothing to backfill: max_runs leaves no run"),
        "{said}"
    );
    assert!(
        said.contains("Raise max_runs, or call it with beyond_max_runs => true."),
        "{said}"
    );
    assert!(
        said.contains("the backfill has used up the runs that max_runs leaves"),
        "{said}"
    );
    // Triggers do not count where dispatches are counted.
    session.batch("SELECT recur.trigger('n')");
    assert_eq!(state(&mut session, id).2, 7);

    // Where completed runs count, those under way hold their places.
    session.batch("SELECT recur.delete('n')");
    create(&mut session, ", max_runs => 3, count_runs => 'completed'");
    session.batch("SELECT recur.trigger('n')");
    assert_eq!(backfill(&mut session, ""), ["12-01", "12-02"]);
    assert!(backfill(&mut session, "").is_empty());
}
