//! Horizons: dispatches that are written ahead of their time.

use pg_recur_tests::timers::set_due;
use pg_recur_tests::{Cluster, Session, eventually};
use uuid::Uuid;

fn create(session: &mut Session, schedule: &str, more: &str) -> Uuid {
    session.value(
        // Half an hour from any occurrence, whatever the time of day.
        &format!("SELECT recur.create('a', $1, 'p', 't', starts_at => now() - interval '30 minutes'{more})"),
        &[&schedule],
    )
}

fn tick_now(session: &mut Session) -> i64 {
    session.value("SELECT dispatched FROM recur.tick()", &[])
}

/// Pending dispatches that lie ahead, and how many runs the action has counted.
fn ahead(session: &mut Session) -> (i64, i64) {
    let row = &session.rows(
        "SELECT (SELECT count(*) FROM recur_internal.live_dispatches
                  WHERE status = 'pending' AND scheduled_at > now() AND available_at = scheduled_at),
                (SELECT run_count FROM recur.recurring_actions)",
        &[],
    )[0];
    (row.get(0), row.get(1))
}

#[test]
fn a_horizon_dispatches_ahead_and_is_not_claimed_before_its_time() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    create(&mut session, "1h", ", horizon => '6 hours'");
    assert_eq!(tick_now(&mut session), 6);
    assert_eq!(ahead(&mut session), (6, 6));
    assert_eq!(tick_now(&mut session), 0);
    assert!(session.rows("SELECT FROM recur.claim(10)", &[]).is_empty());
    // An hour later there is one more, and so on; the tick has a clock of its own.
    let later: String = session.value("SELECT (now() + interval '3 hours')::text", &[]);
    assert_eq!(session.tick(&later).0, 3);
    assert_eq!(ahead(&mut session), (9, 9));
}

#[test]
fn a_count_limits_how_many_lie_ahead() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    create(&mut session, "1h", ", horizon_count => 4");
    assert_eq!(tick_now(&mut session), 4);
    assert_eq!(tick_now(&mut session), 0);
    let later: String = session.value("SELECT (now() + interval '1 hour')::text", &[]);
    assert_eq!(session.tick(&later).0, 1);
}

#[test]
fn a_tick_writes_at_most_fifty_ahead() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    create(&mut session, "* * * * *", ", horizon => '2 hours'");
    assert_eq!(tick_now(&mut session), 120, "in portions, until it is full");
    let largest: i64 = session.value(
        "SELECT max(n) FROM (SELECT count(*) AS n FROM recur_internal.live_dispatches GROUP BY xmin::text) AS portions",
        &[],
    );
    assert_eq!(largest, 50);
}

#[test]
fn edits_and_pauses_withdraw_what_lies_ahead() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "1h", ", horizon => '6 hours'");
    assert_eq!(tick_now(&mut session), 6);

    session.execute(
        "SELECT recur.update($1::uuid, '{\"payload\": {\"n\": 2}}')",
        &[&action],
    );
    assert_eq!(ahead(&mut session), (0, 0));
    assert_eq!(tick_now(&mut session), 6);
    assert_eq!(
        session.count("recur_internal.live_dispatches WHERE payload = '{\"n\": 2}'"),
        6
    );

    session.execute("SELECT recur.pause($1::uuid)", &[&action]);
    assert_eq!(ahead(&mut session), (0, 0));
    assert_eq!(tick_now(&mut session), 0);
    session.execute("SELECT recur.resume($1::uuid)", &[&action]);
    assert_eq!(tick_now(&mut session), 6);

    session.execute(
        "SELECT recur.update($1::uuid, '{\"schedule\": \"2h\"}')",
        &[&action],
    );
    assert_eq!(tick_now(&mut session), 3);
    assert_eq!(ahead(&mut session), (3, 3));

    session.execute(
        "SELECT recur.update($1::uuid, '{\"horizon\": null}')",
        &[&action],
    );
    assert_eq!(tick_now(&mut session), 0);
    let next: bool = session.value(
        "SELECT next_run_at > now() AND next_run_at <= now() + interval '2 hours' FROM recur.recurring_actions",
        &[],
    );
    assert!(next, "from the next one on, as if nothing had been ahead");

    session.execute(
        "SELECT recur.update($1::uuid, '{\"horizon\": \"6 hours\"}')",
        &[&action],
    );
    assert_eq!(tick_now(&mut session), 3);
    session.execute("SELECT recur.delete($1::uuid)", &[&action]);
    assert_eq!(session.count("recur_internal.live_dispatches"), 0);
}

#[test]
fn what_is_claimed_is_not_withdrawn() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "1h", ", horizon => '3 hours'");
    // The first of them is due.
    set_due(
        &mut session,
        "(SELECT starts_at FROM recur_internal.definitions)",
        "",
    );
    assert_eq!(tick_now(&mut session), 4);
    let claimed = session.rows("SELECT FROM recur.claim(10)", &[]);
    assert_eq!(claimed.len(), 1);
    session.execute("SELECT recur.pause($1::uuid)", &[&action]);
    let row = &session.rows(
        "SELECT count(*), min(status), (SELECT run_count FROM recur.recurring_actions)
           FROM recur_internal.live_dispatches",
        &[],
    )[0];
    let left: (i64, String, i64) = (row.get(0), row.get(1), row.get(2));
    assert_eq!(left, (1, "running".to_owned(), 1));
}

#[test]
fn an_edit_revives_an_action_that_ended_ahead() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "1h", ", horizon => '6 hours', max_runs => 3");
    let ended: i64 = session.value("SELECT ended FROM recur.tick()", &[]);
    assert_eq!((ended, ahead(&mut session)), (1, (3, 3)));
    session.execute(
        "SELECT recur.update($1::uuid, '{\"payload\": {\"n\": 2}}')",
        &[&action],
    );
    let row = &session.rows(
        "SELECT enabled, ended_reason, run_count FROM recur.recurring_actions",
        &[],
    )[0];
    let state: (bool, Option<String>, i64) = (row.get(0), row.get(1), row.get(2));
    assert_eq!(state, (true, None, 0));
    assert_eq!(tick_now(&mut session), 3);
    assert_eq!(ahead(&mut session), (3, 3));
}

#[test]
fn what_lies_ahead_is_announced_at_its_time() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");
    create(&mut session, "* * * * * *", ", horizon => '10 seconds'");
    // The first ones may be due before they are written.
    eventually(
        "one that was written ahead of its time is announced",
        || {
            let heard = listener.notification();
            let id: Uuid = heard["id"].as_str().unwrap().parse().unwrap();
            let row = &session.rows(
            "SELECT clock_timestamp() >= scheduled_at, created_at < scheduled_at - interval '1 second'
               FROM recur_internal.live_dispatches WHERE id = $1",
            &[&id],
        )[0];
            assert!(row.get::<_, bool>(0), "announced before its time");
            row.get(1)
        },
    );
}
