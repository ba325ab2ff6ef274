//! Dispatches that are written just before their instant, one by one and as a herd.

use chrono::{DateTime, Utc};
use pg_recur_tests::actions::{EVERY_SECOND, create, dispatch_count, row};
use pg_recur_tests::queue::{NONE, claimed};
use pg_recur_tests::{Cluster, Session, eventually};
use uuid::Uuid;

/// Being on disk when the instant comes, a dispatch is announced without waiting for one.
#[test]
fn a_dispatch_is_staged_just_before_its_instant() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    create(&mut session, "tick", EVERY_SECOND);
    let staged = "SELECT count(*) FROM recur.dispatches WHERE created_at < scheduled_at";
    eventually("one is staged", || session.value::<i64>(staged, &[]) > 0);
    let lateness = "SELECT count(*) FROM recur.stats WHERE lateness_max_ms > 0";
    eventually("its lateness is counted", || {
        session.value::<i64>(lateness, &[]) > 0
    });
    assert_eq!(
        session.count(
            "recur.dispatches
          WHERE available_at <> scheduled_at OR created_at < scheduled_at - interval '100 ms'"
        ),
        0,
        "never available early, nor staged long before"
    );

    // A decision that can still change is taken at the instant.
    session.batch("UPDATE recur.recurring_actions SET overlap = 'skip'");
    let before: i64 = session.value("SELECT run_count FROM recur.recurring_actions", &[]);
    session.batch("SELECT recur.complete(id, attempt) FROM recur.claim(100)");
    eventually("it goes on", || {
        session.batch("SELECT recur.complete(id, attempt) FROM recur.claim(100)");
        session.value::<i64>("SELECT run_count FROM recur.recurring_actions", &[]) >= before + 2
    });
    assert_eq!(
        session.count(
            "recur.dispatches WHERE created_at < scheduled_at
            AND scheduled_at > (SELECT updated_at FROM recur.recurring_actions)"
        ),
        0
    );
}

#[test]
fn a_locked_timer_keeps_no_other_from_being_staged() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    let held = create(&mut session, "held", EVERY_SECOND);
    let tick = create(&mut session, "tick", EVERY_SECOND);
    let mut holder = cluster.session("app");
    holder.batch("BEGIN");
    let due_at: DateTime<Utc> = holder.value(
        "SELECT due_at FROM recur_internal.timers WHERE action_id = $1 FOR UPDATE",
        &[&held],
    );
    let staged = "SELECT count(*) FROM recur.dispatches
                   WHERE action_id = $1 AND scheduled_at > $2 AND created_at < scheduled_at";
    eventually("others are staged while it is due", || {
        session.value::<i64>(staged, &[&tick, &due_at]) >= 2
    });
    let late: i64 = session.value(
        "SELECT count(*) FROM recur.dispatches WHERE action_id = $1 AND scheduled_at >= $2",
        &[&held, &due_at],
    );
    assert_eq!(late, 0, "it is still held");
    holder.batch("COMMIT");
    eventually("it is dispatched when it is free", || {
        session.value::<i64>(
            "SELECT count(*) FROM recur.dispatches WHERE action_id = $1 AND scheduled_at >= $2",
            &[&held, &due_at],
        ) > 0
    });
}

#[test]
fn without_look_ahead_nothing_is_staged() {
    let cluster = Cluster::preloaded("recur.lookahead = 0");
    let mut session = cluster.database("app");
    let action = create(&mut session, "tick", EVERY_SECOND);
    eventually("it fires", || dispatch_count(&mut session, action) >= 3);
    let staged = "SELECT count(*) FROM recur.dispatches WHERE created_at < scheduled_at";
    assert_eq!(session.value::<i64>(staged, &[]), 0);
}

const HERD: i64 = 1_100;

/// In these tests the dispatcher stages a minute ahead, and the herd is due in less: staging must not take longer.
const AHEAD: i32 = 50;

/// A herd that is due at one instant, returned.
fn gather(session: &mut Session) -> DateTime<Utc> {
    gather_with(session, 0, HERD)
}

/// The same, with some that have to be decided at the instant.
fn gather_with(session: &mut Session, careful: i64, plain: i64) -> DateTime<Utc> {
    create_resting(session, "skip", careful);
    create_resting(session, "allow", plain);
    let instant = in_seconds(session, AHEAD);
    session.batch("BEGIN");
    set_off(session, instant);
    session.batch("COMMIT");
    instant
}

fn in_seconds(session: &mut Session, seconds: i32) -> DateTime<Utc> {
    session.value(
        "SELECT date_trunc('second', clock_timestamp()) + $1 * interval '1 second'",
        &[&f64::from(seconds)],
    )
}

fn create_resting(session: &mut Session, overlap: &str, count: i64) {
    session.batch(&format!(
        "SELECT count(recur.create('{overlap}' || n, '@yearly', 'p', 't', overlap => '{overlap}', enabled => false))
           FROM generate_series(1, {count}) AS n"
    ));
}

/// All that rest will be due at this instant.
fn set_off(session: &mut Session, instant: DateTime<Utc>) {
    let schedule = instant.format("%-S %-M %-H * * *").to_string();
    session.execute(
        "UPDATE recur_internal.definitions SET schedule = $1::text, starts_at = now() - interval '1 day'
          WHERE action_type = 't'",
        &[&schedule],
    );
    session.execute(
        "UPDATE recur_internal.timers SET enabled = true, next_run_at = $1, due_at = $1
          WHERE action_id IN (SELECT id FROM recur_internal.definitions WHERE action_type = 't')",
        &[&instant],
    );
}

/// How many of them were written before their instant.
fn staged(session: &mut Session, instant: DateTime<Utc>) -> i64 {
    session.value(
        "SELECT count(*) FROM recur_internal.live_dispatches
          WHERE action_type = 't' AND scheduled_at = $1 AND created_at < $1",
        &[&instant],
    )
}

/// The test sets the clock: there is all the time in the world between staging and the instant.
#[test]
fn a_herd_is_staged_and_announced_at_its_instant() {
    let (cluster, clock) =
        Cluster::with_clock("recur.lookahead = 60\nrecur.check_interval = '200ms'");
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");
    let instant = gather(&mut session);
    eventually("all are staged", || staged(&mut session, instant) == HERD);
    clock.set(-3600);
    // What is staged can neither be claimed nor kept from changing.
    let ids: Vec<Uuid> = session.column(
        "SELECT id FROM recur_internal.definitions WHERE name IN ('allow1', 'allow2') ORDER BY name",
        &[],
    );
    let (paused, edited) = (ids[0], ids[1]);
    session.execute("SELECT recur.pause($1::uuid)", &[&paused]);
    session.execute(
        "SELECT recur.update($1::uuid, '{\"payload\": {\"n\": 2}}')",
        &[&edited],
    );
    assert_eq!(claimed(&mut session, "10"), NONE);
    assert!(listener.waiting_notifications().is_empty());

    clock.set(60);
    let heard = listener.notification();
    let now: DateTime<Utc> = session.value("SELECT clock_timestamp()", &[]);
    assert!(now >= instant, "announced before its time");
    // All of them in one message, or all but the edited one, which may have come by itself.
    let mut counted = heard["count"].as_i64().unwrap_or(1);
    while counted < HERD - 1 {
        counted += listener.notification()["count"].as_i64().unwrap_or(1);
    }
    let messages = 1 + listener.waiting_notifications().len();
    assert!(messages <= 3, "{messages} messages");
    assert_eq!(claimed(&mut session, "5000").len() as i64, HERD - 1);
    let of_edited: String = session.value(
        "SELECT payload::text FROM recur_internal.live_dispatches WHERE action_id = $1",
        &[&edited],
    );
    assert_eq!(of_edited, "{\"n\": 2}");
    let advanced: i64 = session.value(
        "SELECT count(*) FROM recur.recurring_actions
          WHERE run_count = 1 AND last_run_at = $1 AND next_run_at = $1 + interval '1 day'",
        &[&instant],
    );
    assert_eq!(advanced, HERD - 1);
    assert_eq!(row(&mut session, paused)["run_count"], 0);
}

/// An action that is due all the time does not keep the dispatcher from seeing a herd come.
#[test]
fn a_herd_is_staged_beside_an_action_that_is_due_every_second() {
    let cluster = Cluster::preloaded("recur.lookahead = 60");
    let mut session = cluster.database("app");
    session.batch("SELECT recur.create('tick', '* * * * * *', 'p', 'tick')");
    eventually("it ticks", || {
        session.value::<i64>(
            "SELECT run_count FROM recur.recurring_actions WHERE name = 'tick'",
            &[],
        ) > 1
    });
    let instant = gather(&mut session);
    let staged = "SELECT count(*) FROM recur_internal.live_dispatches
                   WHERE action_type = 't' AND scheduled_at = $1 AND created_at < $1 - interval '2 seconds'";
    eventually("all are staged, long before it is the next instant", || {
        session.value::<i64>(staged, &[&instant]) == HERD
    });
}

/// More of them than a batch holds, and they are not moved on.
#[test]
fn actions_that_are_decided_at_the_instant_keep_no_other_from_being_staged() {
    let cluster = Cluster::preloaded("recur.lookahead = 60\nrecur.batch_size = 100");
    let mut session = cluster.database("app");
    let instant = gather_with(&mut session, 350, HERD);
    eventually("all others are staged", || {
        staged(&mut session, instant) == HERD
    });
    let careful: i64 = session.value(
        "SELECT count(*) FROM recur.recurring_actions WHERE overlap = 'skip' AND next_run_at = $1",
        &[&instant],
    );
    assert_eq!(careful, 350);
}

/// What could not be locked in time is not taken for what has been staged.
#[test]
fn a_herd_that_is_locked_for_a_while_is_staged_after_it() {
    let cluster = Cluster::preloaded("recur.lookahead = 60");
    let mut session = cluster.database("app");
    let mut observer = cluster.session("app");
    let mut holder = cluster.session("app");
    let waits = "SELECT count(*) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
                  WHERE l.relation = 'recur_internal.timers'::regclass AND NOT l.granted AND a.backend_type = $1";
    create_resting(&mut session, "allow", HERD);
    let instant = in_seconds(&mut session, AHEAD);
    session.batch("BEGIN");
    set_off(&mut session, instant);
    // The holder is next in line for the table: when there is a herd, it has the lock.
    std::thread::scope(|scope| {
        let holder = scope
            .spawn(|| holder.batch("BEGIN; LOCK TABLE recur_internal.timers IN EXCLUSIVE MODE"));
        eventually("it waits for the lock", || {
            observer.value::<i64>(waits, &[&"client backend"]) == 1
        });
        session.batch("COMMIT");
        holder.join().unwrap();
    });
    for waiting in [1, 0] {
        eventually("the dispatcher waits, and gives up", || {
            observer.value::<i64>(waits, &[&"pg_recur dispatcher"]) == waiting
        });
    }
    holder.batch("COMMIT");
    eventually("all are staged", || staged(&mut session, instant) == HERD);
}

/// Nothing of it can be staged, and that is not found out anew for each timer that somebody sets.
#[test]
fn a_herd_is_read_again_only_when_an_action_has_joined_it() {
    const ROUNDS: i64 = 20;
    let cluster = Cluster::preloaded("recur.lookahead = 60");
    let mut session = cluster.database("app");
    let instant = gather_with(&mut session, HERD, 0);
    let batches = |session: &mut Session| -> i64 {
        session.value("SELECT coalesce(max(batches), 0) FROM recur.stats", &[])
    };
    eventually("it is gone through", || batches(&mut session) >= 2);
    let before = batches(&mut session);
    for round in 1..=ROUNDS {
        session.execute(
            "SELECT recur.create('other' || $1::bigint, '1h', 'p', 'other')",
            &[&round],
        );
        eventually("the other one runs", || {
            session.count("recur_internal.live_dispatches WHERE action_type = 'other'") == round
        });
    }
    let futile = batches(&mut session) - before - ROUNDS;
    assert!(futile < ROUNDS / 2, "{futile} batches that staged nothing");

    create_resting(&mut session, "allow", HERD);
    session.batch("BEGIN");
    set_off(&mut session, instant);
    session.batch("COMMIT");
    eventually("those that have joined it are staged", || {
        staged(&mut session, instant) == HERD
    });
}
