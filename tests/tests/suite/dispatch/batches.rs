//! One batch: each occurrence once, and an error is recorded on the action that caused it.

use pg_recur_tests::faults::{fill_disk, free_disk};
use pg_recur_tests::timers::set_due;
use pg_recur_tests::{Cluster, Session, database_error};
use uuid::Uuid;

fn create(session: &mut Session, name: &str, more: &str) -> Uuid {
    session.value(
        &format!(
            "SELECT recur.create($1, '0 12 * * *', 'p', $1, starts_at => '2030-01-01Z'{more})"
        ),
        &[&name],
    )
}

/// Rows that no function of ours would write: a schedule that is none, a zone that a newer tzdata dropped.
fn corrupt(session: &mut Session, name: &str, change: &str) {
    session.batch(&format!(
        "ALTER DOMAIN recur.schedule DROP CONSTRAINT IF EXISTS schedule_is_valid;
         ALTER DOMAIN recur.timezone DROP CONSTRAINT IF EXISTS timezone_is_known;
         UPDATE recur_internal.definitions SET {change} WHERE name = '{name}'"
    ));
}

/// Makes the dispatches of some actions impossible to write, each in its own way.
fn curse(session: &mut Session) {
    session.batch(
        "ALTER TABLE recur_internal.live_dispatches ADD CONSTRAINT not_forbidden CHECK (action_type <> 'forbidden');
         CREATE FUNCTION public.curse() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'cursed'; END $$;
         CREATE TRIGGER curse BEFORE INSERT ON recur_internal.live_dispatches
             FOR EACH ROW WHEN (NEW.action_type = 'cursed') EXECUTE FUNCTION public.curse()",
    );
}

fn state(session: &mut Session, name: &str) -> String {
    session.value(
        "SELECT concat_ws(' | ', t.error_count, to_char(t.next_run_at AT TIME ZONE 'UTC', 'DD HH24:MI:SS'),
                          to_char(t.due_at AT TIME ZONE 'UTC', 'DD HH24:MI:SS'), t.last_error)
           FROM recur_internal.timers AS t JOIN recur_internal.definitions AS d ON d.id = t.action_id
          WHERE d.name = $1",
        &[&name],
    )
}

#[test]
fn only_the_actions_that_fail_in_a_batch_record_an_error() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for number in 0..50 {
        create(&mut session, &format!("good{number}"), "");
    }
    for name in ["garbled", "nowhere", "cursed", "forbidden"] {
        create(&mut session, name, "");
    }
    corrupt(&mut session, "garbled", "schedule = 'garbage'");
    corrupt(&mut session, "nowhere", "timezone = 'Mars/Olympus'");
    curse(&mut session);

    assert_eq!(session.tick("2030-01-01 12:00:05Z"), (50, 0, 0, 4));
    assert_eq!(
        session.count(
            "recur.recurring_actions AS a JOIN recur.dispatches AS d ON d.action_id = a.id
              WHERE a.name LIKE 'good%' AND a.error_count = 0 AND a.next_run_at = '2030-01-02 12:00Z'
                AND a.run_count = 1"
        ),
        50
    );
    // What was due is still owed; the next try is later.
    let owed = "1 | 01 12:00:00 | 01 12:01:05 | ";
    let garbled = state(&mut session, "garbled");
    assert_eq!(
        garbled,
        format!("{owed}schedule \"garbage\" is in no known notation")
    );
    assert_eq!(
        state(&mut session, "nowhere"),
        format!("{owed}time zone \"Mars/Olympus\" is not in the IANA database")
    );
    assert_eq!(
        state(&mut session, "cursed"),
        format!("{owed}cursed (SQLSTATE P0001)")
    );
    assert_eq!(
        state(&mut session, "forbidden"),
        format!(
            "{owed}new row for relation \"live_dispatches\" violates check constraint \"not_forbidden\" (SQLSTATE \
             23514)"
        )
    );
    let events: Vec<String> = session.texts(
        "SELECT concat_ws(' ', d.name, e.detail ->> 'sqlstate') FROM recur.events AS e
           JOIN recur_internal.definitions AS d ON d.id = e.action_id
          WHERE e.kind = 'action.error' ORDER BY 1",
        &[],
    );
    assert_eq!(
        events,
        [
            "cursed P0001",
            "forbidden 23514",
            "garbled 22023",
            "nowhere 22023"
        ]
    );

    assert_eq!(session.tick("2030-01-01 12:01:04Z"), (0, 0, 0, 0));
    assert_eq!(session.tick("2030-01-01 12:01:05Z"), (0, 0, 0, 4));
    assert!(state(&mut session, "cursed").starts_with("2 | 01 12:00:00 | 01 12:03:05 | "));
}

#[test]
fn a_full_disk_is_no_error_of_an_action() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    create(&mut session, "a", "");
    fill_disk(&mut session, "INSERT", "recur_internal.live_dispatches");
    let error = session
        .0
        .query("SELECT recur.tick('2030-01-01 12:00Z')", &[]);
    let (code, message, _) = database_error(&error.unwrap_err());
    assert_eq!((code.as_str(), message.as_str()), ("53100", "no room left"));
    assert!(state(&mut session, "a").starts_with("0 | 01 12:00:00 | 01 12:00:00"));
    free_disk(&mut session);
    assert_eq!(session.tick("2030-01-01 12:00Z"), (1, 0, 0, 0));
}

/// Ticks whenever the one action is due, so often.
fn fail_times(session: &mut Session, times: usize) {
    for _ in 0..times {
        let due: String = session.value("SELECT due_at::text FROM recur_internal.timers", &[]);
        assert_eq!(session.tick(&due), (0, 0, 0, 1));
    }
}

fn notified(session: &mut Session) -> Vec<String> {
    session.texts(
        "SELECT concat_ws(': ', detail ->> 'contact', detail ->> 'error') FROM recur.events
          WHERE kind = 'owner.notified' ORDER BY id",
        &[],
    )
}

#[test]
fn an_action_that_keeps_failing_is_paused_and_its_contact_notified() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur_events");
    let action = create(&mut session, "cursed", ", contact => 'ops@example.com'");
    curse(&mut session);
    fail_times(&mut session, 2);
    assert!(notified(&mut session).is_empty());
    fail_times(&mut session, 1);
    assert_eq!(
        notified(&mut session),
        ["ops@example.com: cursed (SQLSTATE P0001)"]
    );
    fail_times(&mut session, 6);
    assert_eq!(notified(&mut session).len(), 1, "once at the threshold");
    assert!(state(&mut session, "cursed").starts_with("9 | 01 12:00:00 | "));
    fail_times(&mut session, 1);
    let row = &session.rows(
        "SELECT enabled, next_run_at IS NULL, paused_reason, error_count FROM recur.recurring_actions",
        &[],
    )[0];
    let state: (bool, bool, String, i32) = (row.get(0), row.get(1), row.get(2), row.get(3));
    assert_eq!(
        state,
        (
            false,
            true,
            "10 errors in a row, the last: cursed (SQLSTATE P0001)".to_owned(),
            10
        )
    );
    assert_eq!(notified(&mut session).len(), 2, "and when it is given up");

    let kinds: Vec<String> = listener
        .waiting_notifications()
        .iter()
        .filter(|heard| heard["action_id"] == action.to_string())
        .map(|heard| heard["kind"].as_str().unwrap().to_owned())
        .collect();
    let count = |kind: &str| kinds.iter().filter(|heard| *heard == kind).count();
    assert_eq!(
        [
            count("action.error"),
            count("owner.notified"),
            count("action.paused")
        ],
        [10, 2, 1]
    );

    // A new chance: it may fail as often again.
    session.execute("SELECT recur.resume($1::uuid)", &[&action]);
    let row = &session.rows(
        "SELECT enabled, error_count, paused_reason IS NULL FROM recur.recurring_actions",
        &[],
    )[0];
    let state: (bool, i32, bool) = (row.get(0), row.get(1), row.get(2));
    assert_eq!(state, (true, 0, true));
    fail_times(&mut session, 1);
}

#[test]
fn a_mute_interval_limits_how_often_the_contact_is_notified() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    create(&mut session, "cursed", ", mute_interval => '1 day'");
    curse(&mut session);
    listener.batch("LISTEN recur_events");
    fail_times(&mut session, 10);
    // Everything is recorded, one notification sent: the first error, within the day.
    let heard = listener.waiting_notifications();
    let kinds: Vec<&str> = heard
        .iter()
        .map(|one| one["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["action.error", "owner.notified"]);
    assert_eq!(
        notified(&mut session).len(),
        1,
        "not again when it is paused"
    );
    assert_eq!(
        session.count("recur.events WHERE kind = 'action.error'"),
        10
    );

    session.batch(
        "UPDATE recur_internal.progress SET last_notified_at = now() - interval '25 hours',
                                                   announced_at = now() - interval '25 hours'",
    );
    session.batch("SELECT recur.resume(id) FROM recur.recurring_actions");
    listener.waiting_notifications();
    fail_times(&mut session, 3);
    let kinds: Vec<String> = listener
        .waiting_notifications()
        .iter()
        .map(|one| one["kind"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds, ["action.error", "owner.notified"]);
}

#[test]
fn an_action_fires_again_once_its_error_is_mended() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "cursed", "");
    curse(&mut session);
    fail_times(&mut session, 3);
    session.execute(
        "SELECT recur.update($1::uuid, '{\"action_type\": \"blessed\"}')",
        &[&action],
    );
    // At once, not when the pause after the third error is over; and what was owed is what fires.
    assert_eq!(session.tick("2030-01-01 12:00:00Z"), (1, 0, 0, 0));
    assert!(state(&mut session, "cursed").starts_with("0 | 02 12:00:00 | 02 12:00:00"));

    corrupt(&mut session, "cursed", "schedule = 'garbage'");
    assert_eq!(session.tick("2030-01-02 12:00:00Z"), (0, 0, 0, 1));
    session.execute(
        "SELECT recur.update($1::uuid, '{\"schedule\": \"0 13 * * *\"}')",
        &[&action],
    );
    assert_eq!(session.tick("2030-01-02 13:00:00Z").0, 1);
    assert!(state(&mut session, "cursed").starts_with("0 | 03 13:00:00 | 03 13:00:00"));
}

#[test]
fn an_id_is_a_function_of_action_and_occurrence() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    create(&mut session, "a", "");
    assert_eq!(session.tick("2030-01-01 12:00Z"), (1, 0, 0, 0));
    // The timer knows nothing of that dispatch, as after a restore of the dispatches alone.
    session.batch(
        "UPDATE recur_internal.live_dispatches SET provider = 'first';
         UPDATE recur_internal.timers SET last_run_at = NULL, run_count = 0",
    );
    set_due(&mut session, "'2030-01-01 12:00Z'", "");
    assert_eq!(session.tick("2030-01-01 12:00Z"), (0, 0, 0, 0));
    assert_eq!(session.tick("2030-01-02 12:00Z"), (1, 0, 0, 0));
    let rows: Vec<String> = session.texts(
        "SELECT concat_ws(' ', provider, id = recur_internal.dispatch_id(action_id, scheduled_at)) FROM recur.dispatches
          ORDER BY id",
        &[],
    );
    assert_eq!(rows, ["first t", "p t"]);
}

#[test]
fn what_is_over_never_fires_again() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for keep in ["all", "failures", "none"] {
        let action = create(&mut session, keep, &format!(", keep_history => '{keep}'"));
        assert_eq!(session.tick("2030-01-01 12:00Z"), (1, 0, 0, 0));
        assert_eq!(session.tick("2030-01-02 12:00Z"), (1, 0, 0, 0));
        session.batch("SELECT recur.complete(id, attempt) FROM recur.claim(2)");
        // As after a clock that was set back, or by hand.
        set_due(&mut session, "'2030-01-01 12:00Z'", "");
        assert_eq!(session.tick("2030-01-01 12:00Z").0, 0, "{keep}");
        assert_eq!(session.tick("2030-01-02 12:00Z").0, 0, "{keep}");
        assert_eq!(session.tick("2030-01-03 12:00Z").0, 1, "{keep}");
        let runs: i64 = session.value("SELECT run_count FROM recur.recurring_actions", &[]);
        assert_eq!(runs, 3, "{keep}");
        session.execute("SELECT recur.delete($1::uuid)", &[&action]);
    }
}

#[test]
fn a_deleted_or_edited_action_fires_as_it_is_then() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let deleted = create(&mut session, "deleted", "");
    let edited = create(&mut session, "edited", "");
    let other = create(
        &mut session,
        "other",
        ", dedup_key => '{{recurring_id}} {{execution_time}}'",
    );
    session.execute("SELECT recur.delete($1::uuid)", &[&deleted]);
    session.execute(
        "SELECT recur.update($1::uuid, '{\"payload\": {\"n\": 2}, \"priority\": 7}')",
        &[&edited],
    );
    assert_eq!(session.tick("2030-01-01 12:00Z"), (2, 0, 0, 0));
    let row = &session.rows(
        "SELECT payload ->> 'n', priority FROM recur.dispatches WHERE action_id = $1",
        &[&edited],
    )[0];
    assert_eq!(
        (row.get::<_, String>(0).as_str(), row.get::<_, i32>(1)),
        ("2", 7)
    );
    let key: String = session.value(
        "SELECT dedup_key FROM recur.dispatches WHERE action_id = $1",
        &[&other],
    );
    assert_eq!(key, format!("{other} 2030-01-01T12:00:00Z"));
}

#[test]
fn a_backlog_is_drained_in_batches() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT count(recur.create('a' || n, '0 12 * * *', 'p', 't', starts_at => '2030-01-01Z', misfire => 'all'))
           FROM generate_series(1, 2300) AS n",
    );
    // Three occurrences of each; a batch has a thousand timers.
    assert_eq!(session.tick("2030-01-03 12:00Z"), (6_900, 0, 0, 0));
    assert_eq!(session.count("recur.recurring_actions AS a
          WHERE a.run_count <> 3 OR (SELECT count(*) FROM recur.dispatches AS d WHERE d.action_id = a.id) <> 3"), 0);
}

/// An operator should not set it so, but no other action must suffer.
#[test]
fn a_timer_that_is_due_without_a_next_run_stops_no_other() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.create('odd', '@hourly', 'p', 't', starts_at => '2030-01-01Z'),
                recur.create('even', '@hourly', 'p', 't', starts_at => '2030-01-01Z');
         UPDATE recur_internal.timers SET next_run_at = NULL WHERE action_id = recur.id_of('odd')",
    );
    session.tick("2030-01-01Z");
    assert_eq!(
        session.count(
            "recur.recurring_actions WHERE run_count = 1 AND next_run_at = '2030-01-01 01:00Z'"
        ),
        2
    );
}
