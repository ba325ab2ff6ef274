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

/// What people see of the action: state, runs that are over, hours to the next run.
fn seen(session: &mut Session) -> (String, Option<String>, Option<String>) {
    let row = &session.rows(
        "SELECT o.state, (now() - a.last_run_at)::text,
                date_trunc('second', a.next_run_at - a.starts_at)::text
           FROM recur.recurring_actions AS a, recur.overview AS o",
        &[],
    )[0];
    (row.get(0), row.get(1), row.get(2))
}

/// The instant some hours after the start of the action.
fn hours(session: &mut Session, hours: i32) -> String {
    session.value(
        "SELECT (starts_at + make_interval(hours => $1))::text FROM recur.recurring_actions",
        &[&hours],
    )
}

#[test]
fn the_next_run_lies_ahead_and_the_last_run_does_not() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    create(&mut session, "1h", ", horizon => '6 hours'");
    assert_eq!(tick_now(&mut session), 6);
    let next = |hours: i32| Some(format!("{hours:02}:00:00"));
    assert_eq!(seen(&mut session), ("active".to_owned(), None, next(1)));
    let overview: (Option<String>, bool) = {
        let row = &session.rows(
            "SELECT ran_ago, next_run LIKE '%, 30 min' OR next_run LIKE '%, 29 min' FROM recur.overview",
            &[],
        )[0];
        (row.get(0), row.get(1))
    };
    assert_eq!(overview, (None, true));
    for hour in 1..=3 {
        let at = hours(&mut session, hour);
        assert_eq!(session.tick(&at).0, 1, "one more ahead");
        let last: bool = session.value(
            "SELECT last_run_at = $1::text::timestamptz FROM recur.recurring_actions",
            &[&at],
        );
        assert!(last, "{hour}");
        assert_eq!(seen(&mut session).2, next(hour + 1));
    }
    // Nothing of this depends on the history.
    let forecast: i64 = session.value(
        "SELECT sum(dispatches)::bigint FROM recur.forecast(now() + interval '3 hours', now() + interval '8 hours')",
        &[],
    );
    assert_eq!(forecast, 5, "what is generated is still to come");
}

#[test]
fn an_action_ends_when_its_last_run_is_over() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "1h", ", horizon => '6 hours', max_runs => 3");
    let now: String = session.value("SELECT now()::text", &[]);
    assert_eq!(session.tick(&now), (3, 0, 0, 0));
    assert_eq!(seen(&mut session).0, "active");
    assert_eq!(session.tick(&now), (0, 0, 0, 0), "all are generated");
    for hour in [1, 2] {
        let at = hours(&mut session, hour);
        assert_eq!(session.tick(&at), (0, 0, 0, 0));
        assert_eq!(seen(&mut session).0, "active");
    }
    let at = hours(&mut session, 3);
    assert_eq!(session.tick(&at), (0, 0, 0, 0), "all are due");
    assert_eq!(seen(&mut session).0, "active");
    session.batch("SELECT recur.cancel(id) FROM recur.dispatches");
    assert_eq!(session.tick(&at), (0, 0, 1, 0));
    let row = &session.rows(
        "SELECT state, ended_reason, a.next_run_at IS NULL, last_run_at = $1::text::timestamptz
           FROM recur.recurring_actions AS a, recur.overview",
        &[&at],
    )[0];
    let ended: (String, String, bool, bool) = (row.get(0), row.get(1), row.get(2), row.get(3));
    assert_eq!(
        ended,
        ("ended".to_owned(), "exhausted".to_owned(), true, true)
    );
    assert_eq!(
        session.count(&format!(
            "recur.events WHERE kind = 'action.exhausted' AND action_id = '{action}'"
        )),
        1
    );
}

#[test]
fn however_its_last_run_ends_the_action_ends() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.mark_test_database(); SELECT recur.set_clock('2040-03-01 09:30:00+00')",
    );
    let claimed = "FROM recur.claim(1, '{p}', lease => '10 minutes')";
    for (name, last) in [
        (
            "completed",
            format!("SELECT recur.complete(id, attempt) {claimed}"),
        ),
        (
            "failed",
            format!("SELECT recur.fail(id, attempt, 'no', false) {claimed}"),
        ),
        (
            "many",
            format!("SELECT recur.complete_many(array_agg(id), array_agg(attempt)) {claimed}"),
        ),
        (
            "cancelled",
            "SELECT recur.cancel(id) FROM recur.dispatches WHERE status = 'pending'".to_owned(),
        ),
        (
            "lost",
            format!("SELECT id {claimed}; SELECT recur.set_clock('11 minutes' + recur.clock())"),
        ),
    ] {
        session.batch(&format!(
            "SELECT recur.create('{name}', '1h', 'p', 'a', starts_at => recur.clock() - interval '30 minutes',
                                 horizon => '6 hours', max_runs => 2, max_attempts => 2)"
        ));
        let state = |session: &mut Session| -> (String, Option<String>) {
            let of = "SELECT state, reason FROM recur.overview WHERE name = $1";
            let row = &session.rows(of, &[&name])[0];
            (row.get(0), row.get(1))
        };
        let active = ("active".to_owned(), None);
        let tick = "SELECT ended FROM recur.tick()";
        assert_eq!(session.value::<i64>(tick, &[]), 0);
        session.batch("SELECT recur.set_clock(recur.clock() + interval '2 hours')");
        assert_eq!(session.value::<i64>(tick, &[]), 0, "both are due");
        session.batch(&format!(
            "SELECT recur.fail(id, attempt, 'again') {claimed}"
        ));
        session.batch(&format!("SELECT recur.complete(id, attempt) {claimed}"));
        assert_eq!(
            session.value::<i64>(tick, &[]),
            0,
            "one waits for its retry"
        );
        session.batch("SELECT recur.set_clock(recur.clock() + interval '5 minutes')");
        assert_eq!(state(&mut session), active, "{name}");
        session.batch(&last);
        session.batch("SELECT recur.tick()");
        let ended = ("ended".to_owned(), Some("exhausted".to_owned()));
        assert_eq!(state(&mut session), ended, "{name}");
    }
}

#[test]
fn an_action_whose_last_run_is_unfinished_can_be_changed() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "1h", ", horizon => '6 hours', max_runs => 3");
    assert_eq!(tick_now(&mut session), 3);
    let at = hours(&mut session, 3);
    session.tick(&at);
    for change in [
        r#"{"priority": 3}"#,
        r#"{"horizon": "2 hours"}"#,
        r#"{"enabled": false}"#,
    ] {
        session.execute(
            "SELECT recur.update($1::uuid, $2::text::jsonb)",
            &[&action, &change],
        );
    }
    assert_eq!(seen(&mut session).0, "paused");
    session.execute(
        "SELECT recur.update($1::uuid, '{\"max_runs\": 4, \"enabled\": true}')",
        &[&action],
    );
    assert_eq!(seen(&mut session).0, "active");
    let explained: String = session.value(
        "SELECT verdict FROM recur.explain('a', now() + interval '1 year')",
        &[],
    );
    assert_eq!(explained, "never existed");
}

/// The number of withdrawn dispatches in the latest event.
fn withdrawn(session: &mut Session) -> (String, Option<String>) {
    let row = &session.rows(
        "SELECT kind, detail ->> 'withdrawn' FROM recur.events ORDER BY id DESC LIMIT 1",
        &[],
    )[0];
    (row.get(0), row.get(1))
}

#[test]
fn an_action_whose_last_run_is_generated_can_be_edited_and_paused() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "1h", ", horizon => '6 hours', max_runs => 3");
    assert_eq!(tick_now(&mut session), 3);
    session.execute(
        "SELECT recur.update($1::uuid, '{\"payload\": {\"n\": 2}}')",
        &[&action],
    );
    let number = |number: &str| Some(number.to_owned());
    assert_eq!(
        withdrawn(&mut session),
        ("action.updated".to_owned(), number("3"))
    );
    assert_eq!(ahead(&mut session), (0, 0));
    assert_eq!(tick_now(&mut session), 3);
    assert_eq!(ahead(&mut session), (3, 3));

    session.execute("SELECT recur.pause($1::uuid, 'holidays')", &[&action]);
    assert_eq!(
        withdrawn(&mut session),
        ("action.paused".to_owned(), number("3"))
    );
    assert_eq!(ahead(&mut session), (0, 0));
    assert_eq!(seen(&mut session), ("paused".to_owned(), None, None));
    session.execute("SELECT recur.resume($1::uuid)", &[&action]);
    assert_eq!(withdrawn(&mut session), ("action.resumed".to_owned(), None));
    assert_eq!(tick_now(&mut session), 3);

    session.batch("UPDATE recur.recurring_actions SET enabled = false");
    assert_eq!(
        withdrawn(&mut session),
        ("action.paused".to_owned(), number("3"))
    );
}

#[test]
fn what_was_cancelled_ahead_does_not_come_back() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "1h", ", horizon => '3 hours'");
    assert_eq!(tick_now(&mut session), 3);
    session
        .batch("SELECT recur.cancel(id) FROM recur.dispatches ORDER BY scheduled_at DESC LIMIT 1");
    session.execute(
        "SELECT recur.update($1::uuid, '{\"priority\": 2}')",
        &[&action],
    );
    assert_eq!(
        seen(&mut session),
        ("active".to_owned(), None, Some("01:00:00".to_owned()))
    );
    assert_eq!(tick_now(&mut session), 2);
    assert_eq!(ahead(&mut session).0, 2);
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
