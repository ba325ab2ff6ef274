//! A statement that had to wait for a lock acts on what is true then, not on what was true when it began.

use pg_recur_tests::timers::set_due;
use pg_recur_tests::{Cluster, Session, eventually, overtake};
use uuid::Uuid;

/// Runs a statement that must wait for `first`, lets `first` do its work and commit, and returns when both are through.
fn let_wait(
    cluster: &Cluster,
    first: &mut Session,
    waiting: &str,
    work: impl FnOnce(&mut Session),
) {
    let second = |session: &mut Session| session.batch(waiting);
    overtake(cluster, "app", second, || {
        work(first);
        first.batch("COMMIT");
    });
}

/// Every occurrence has one dispatch, live or finished.
fn doubled(session: &mut Session) -> i64 {
    session.value(
        "SELECT count(*)
           FROM (SELECT FROM recur.dispatches WHERE trigger <> 'manual'
                  GROUP BY action_id, scheduled_at HAVING count(*) > 1) AS d",
        &[],
    )
}

#[test]
fn an_edit_that_waited_brings_back_nothing_that_was_dispatched_meanwhile() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action: Uuid = session.value(
        "SELECT recur.create('a', '* * * * * *', 'p', 't', misfire => 'all')",
        &[],
    );
    session.batch("BEGIN; SELECT FROM recur_internal.timers FOR UPDATE");
    let edit = format!("SELECT recur.update('{action}', '{{\"payload\": {{\"n\": 2}}}}')");
    let_wait(&cluster, &mut session, &edit, |session| {
        let since: String = session.value("SELECT clock_timestamp()::text", &[]);
        eventually("three occurrences are dispatched", || {
            session.batch("SELECT recur.tick()");
            session.value::<i64>(
                "SELECT count(*) FROM recur_internal.live_dispatches WHERE scheduled_at > $1::text::timestamptz",
                &[&since],
            ) >= 3
        });
        // All but the last are over already.
        session.batch(
            "SELECT recur.complete(id, attempt)
               FROM recur.claim((SELECT count(*)::int - 1 FROM recur_internal.live_dispatches))",
        );
    });
    session.batch("SELECT recur.tick()");
    assert_eq!(doubled(&mut session), 0);
    let agrees: bool = session.value(
        "SELECT run_count = (SELECT count(*) FROM recur.dispatches)
            AND last_run_at = (SELECT max(scheduled_at) FROM recur.dispatches)
           FROM recur.recurring_actions",
        &[],
    );
    assert!(agrees);
}

/// An hourly action whose last occurrence is dispatched and claimed.
fn claimed(session: &mut Session, more: &str) -> Uuid {
    let action: Uuid = session.value(
        &format!("SELECT recur.create('a', '1h', 'p', 't', starts_at => now() - interval '10 hours 30 minutes'{more})"),
        &[],
    );
    set_due(
        session,
        "(SELECT starts_at + interval '10 hours' FROM recur_internal.definitions)",
        "",
    );
    session.batch("SELECT recur.tick(); SELECT recur.claim(1)");
    action
}

/// The dispatch is in one of the two tables, whichever a backfill sees.
#[test]
fn a_backfill_waits_for_no_report_and_repeats_nothing() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = claimed(&mut session, "");
    session.batch("BEGIN; SELECT recur.complete(id, attempt) FROM recur_internal.live_dispatches");
    let mut other = cluster.session("app");
    other.batch("SET lock_timeout = '10s'");
    let backfill = format!("SELECT recur.backfill('{action}', now() - interval '3 hours', now())");
    other.batch(&backfill);
    session.batch("COMMIT");
    other.batch(&backfill);
    assert_eq!(doubled(&mut session), 0);
    assert_eq!(
        session.count("recur.dispatches WHERE trigger = 'backfill'"),
        2
    );
}

/// The occurrence's dispatch is on its way from one table to the other.
#[test]
fn a_tick_leaves_what_would_wait_for_a_report_to_the_next() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    claimed(&mut session, "");
    // As after a clock that was set back.
    set_due(&mut session, "last_run_at", "");
    session.batch("BEGIN; SELECT recur.complete(id, attempt) FROM recur_internal.live_dispatches");
    let mut other = cluster.session("app");
    let (before, _, _, failed) = other.tick("now");
    assert_eq!((before, failed), (0, 0));
    let due = "recur_internal.timers WHERE due_at < now()";
    assert_eq!(other.count(due), 1);
    session.batch("COMMIT");
    assert_eq!(other.tick("now").0, 0);
    assert_eq!(other.count(due), 0);
    assert_eq!(doubled(&mut session), 0);
    let runs: i64 = session.value("SELECT run_count FROM recur.recurring_actions", &[]);
    assert_eq!(runs, 1);
}

#[test]
fn a_trigger_and_a_delete_leave_nothing_behind() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = claimed(&mut session, "");
    session.batch("BEGIN");
    session.execute("SELECT recur.trigger($1::uuid)", &[&action]);
    let delete = format!("SELECT recur.delete('{action}')");
    let_wait(&cluster, &mut session, &delete, |_| {});
    assert_eq!(
        session.count("recur_internal.live_dispatches WHERE status = 'pending'"),
        0
    );
    let cancelled: String = session.value(
        "SELECT error FROM recur.dispatches WHERE status = 'cancelled'",
        &[],
    );
    assert_eq!(cancelled, "the action was deleted");
}
