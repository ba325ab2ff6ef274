//! Alarms that need no failure: late_after, max_runtime, max_silence.

use pg_recur_tests::queue::{claim_this, idle_action, queue_for};
use pg_recur_tests::{Cluster, Session, eventually};
use serde_json::Value;
use uuid::Uuid;

/// The alarms at that time: a tick looks at them where no worker does.
fn look(session: &mut Session, time: &str) {
    session.batch(&format!(
        "SELECT recur.set_clock('2040-01-01 {time}+00'); SELECT recur.tick()"
    ));
}

/// What was raised and is over, oldest first.
fn alarms(session: &mut Session) -> Vec<String> {
    session.texts(
        "SELECT replace(kind, 'alarm.', '') || ' ' || (detail ->> 'alarm') FROM recur.events
          WHERE kind IN ('alarm.raised', 'alarm.over') ORDER BY id",
        &[],
    )
}

fn state(session: &mut Session) -> String {
    session.value("SELECT state FROM recur.overview", &[])
}

#[test]
fn a_dispatch_that_is_not_started_in_time_raises_an_alarm_once() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur_events");
    look(&mut session, "07:00");
    session.batch(
        "SELECT recur.create('report', '0 8 * * *', 'mailer', 'send', late_after => '10 minutes', contact => 'ops')",
    );
    look(&mut session, "08:00");
    listener.waiting_notifications();
    look(&mut session, "08:09:59");
    assert_eq!(alarms(&mut session), [""; 0]);
    assert_eq!(state(&mut session), "active");
    look(&mut session, "08:10");
    assert_eq!(alarms(&mut session), ["raised late"]);
    assert_eq!(state(&mut session), "late");
    let heard = listener.waiting_notifications();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0]["kind"], "alarm.raised");
    let row = &session.rows(
        "SELECT dispatch_id, detail FROM recur.events WHERE kind = 'alarm.raised'",
        &[],
    )[0];
    let (dispatch, detail): (Uuid, Value) = (row.get(0), row.get(1));
    assert_eq!(
        detail["problem"],
        "a dispatch was not started within 00:10:00"
    );
    assert_eq!(
        (&detail["contact"], &detail["since"]),
        (&"ops".into(), &"2040-01-01T08:00:00Z".into())
    );
    let findings = session.texts("SELECT finding FROM recur.doctor()", &[]);
    assert!(
        findings
            .iter()
            .any(|one| one
                .starts_with("action \"report\": a dispatch has waited to be started since")),
        "{findings:?}"
    );
    let now: i64 = session.value(
        "SELECT coalesce((SELECT alarms_now FROM recur.stats), 0)",
        &[],
    );
    assert_eq!(now, 1);
    // While it lasts nothing more is said.
    look(&mut session, "08:30");
    assert_eq!(alarms(&mut session).len(), 1);
    claim_this(&mut session, dispatch);
    look(&mut session, "08:32");
    assert_eq!(alarms(&mut session), ["raised late", "over late"]);
    assert_eq!(state(&mut session), "active");
    look(&mut session, "08:40");
    assert_eq!(alarms(&mut session).len(), 2);
    // The next day is another breach.
    session.batch("SELECT recur.set_clock('2040-01-02 08:00+00'); SELECT recur.tick()");
    session.batch("SELECT recur.set_clock('2040-01-02 08:10+00'); SELECT recur.tick()");
    assert_eq!(alarms(&mut session).len(), 3);
}

#[test]
fn an_attempt_that_does_not_end_raises_an_alarm() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    look(&mut session, "08:00");
    let action = idle_action(
        &mut session,
        ", max_runtime => '30 minutes', lease => '1 day'",
    );
    let id = queue_for(&mut session, action);
    claim_this(&mut session, id);
    look(&mut session, "08:29");
    assert_eq!(alarms(&mut session), [""; 0]);
    look(&mut session, "08:30");
    assert_eq!(
        (alarms(&mut session), state(&mut session)),
        (vec!["raised overrunning".into()], "overrunning".into())
    );
    let culprit: Uuid = session.value(
        "SELECT dispatch_id FROM recur.events WHERE kind = 'alarm.raised'",
        &[],
    );
    assert_eq!(culprit, id);
    session.execute("SELECT recur.complete($1, 1)", &[&id]);
    look(&mut session, "08:32");
    assert_eq!(
        alarms(&mut session),
        ["raised overrunning", "over overrunning"]
    );
}

#[test]
fn silence_raises_an_alarm_only_while_the_action_is_enabled() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    look(&mut session, "08:00");
    let action = idle_action(&mut session, ", max_silence => '1 hour'");
    look(&mut session, "08:30");
    let id = queue_for(&mut session, action);
    claim_this(&mut session, id);
    session.execute("SELECT recur.complete($1, 1)", &[&id]);
    // Counted from the last completion.
    look(&mut session, "09:29");
    assert_eq!(alarms(&mut session), [""; 0]);
    look(&mut session, "09:30");
    assert_eq!(
        (alarms(&mut session), state(&mut session)),
        (vec!["raised silent".into()], "silent".into())
    );
    // A failure is no sign of life.
    let id = queue_for(&mut session, action);
    claim_this(&mut session, id);
    session.execute("SELECT recur.fail($1, 1, 'x', false)", &[&id]);
    look(&mut session, "09:35");
    assert_eq!(alarms(&mut session).len(), 1);
    session.execute("SELECT recur.pause($1::uuid)", &[&action]);
    look(&mut session, "09:36");
    assert_eq!(alarms(&mut session), ["raised silent", "over silent"]);
    look(&mut session, "11:00");
    session.execute("SELECT recur.resume($1::uuid)", &[&action]);
    look(&mut session, "11:59");
    assert_eq!(alarms(&mut session).len(), 2);
    look(&mut session, "12:00");
    assert_eq!(alarms(&mut session).len(), 3);
}

#[test]
fn alarms_can_be_set_and_taken_away_later() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    look(&mut session, "08:00");
    let action = idle_action(&mut session, "");
    queue_for(&mut session, action);
    assert_eq!(session.count("recur_internal.alarms"), 0);
    look(&mut session, "09:00");
    session.execute(
        "SELECT recur.update($1::uuid, '{\"late_after\": \"5 minutes\"}')",
        &[&action],
    );
    look(&mut session, "09:00:01");
    assert_eq!(alarms(&mut session), ["raised late"]);
    session.execute(
        "SELECT recur.update($1::uuid, '{\"late_after\": null, \"max_runtime\": \"1 hour\"}')",
        &[&action],
    );
    look(&mut session, "09:00:02");
    assert_eq!(alarms(&mut session), ["raised late", "over late"]);
    session.execute(
        "SELECT recur.update($1::uuid, '{\"max_runtime\": null}')",
        &[&action],
    );
    assert_eq!(session.count("recur_internal.alarms"), 0);
    // Deleting an action takes its alarms along.
    session.execute(
        "SELECT recur.update($1::uuid, '{\"max_silence\": \"1 hour\"}')",
        &[&action],
    );
    session.execute("SELECT recur.delete($1::uuid)", &[&action]);
    assert_eq!(session.count("recur_internal.alarms"), 0);
}

#[test]
fn a_muted_action_raises_its_alarm_silently() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    look(&mut session, "08:00");
    idle_action(&mut session, ", max_silence => '1 minute', mute => true");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur_events");
    look(&mut session, "09:00");
    assert_eq!(alarms(&mut session), ["raised silent"]);
    assert_eq!(listener.waiting_notifications(), Vec::<Value>::new());
}

#[test]
fn what_the_same_tick_dispatches_is_not_late_yet() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    look(&mut session, "07:00");
    session.batch(
        "SELECT recur.create('report', '0 8 * * *', 'mailer', 'send', late_after => '10 minutes')",
    );
    look(&mut session, "12:00");
    assert_eq!(session.count("recur.dispatches"), 1);
    look(&mut session, "12:09");
    assert_eq!(alarms(&mut session), [""; 0]);
    look(&mut session, "12:10");
    assert_eq!(alarms(&mut session), ["raised late"]);
}

/// A dispatch that is made by hand is looked at in time, although the next look was to be an hour later.
#[test]
fn a_dispatch_made_by_hand_is_not_forgotten() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    look(&mut session, "08:00");
    let action = idle_action(&mut session, ", late_after => '1 minute'");
    look(&mut session, "08:00:01");
    queue_for(&mut session, action);
    look(&mut session, "08:02");
    assert_eq!(alarms(&mut session), ["raised late"]);
}

#[test]
fn the_worker_looks_at_alarms_by_itself_and_only_where_there_are_any() {
    let cluster = Cluster::preloaded("recur.check_interval = 100ms");
    let mut session = cluster.database("app");
    idle_action(&mut session, "");
    let action = idle_action(&mut session, ", late_after => '50 milliseconds'");
    assert_eq!(session.count("recur_internal.alarms"), 1);
    let id = queue_for(&mut session, action);
    eventually("the alarm is raised", || {
        alarms(&mut session) == ["raised late"]
    });
    // Counted once it is committed, and so a moment after it is seen.
    eventually("the alarm is counted", || {
        session.value::<i64>("SELECT alarms_raised FROM recur.stats", &[]) == 1
    });
    claim_this(&mut session, id);
    eventually("the alarm is over", || {
        alarms(&mut session) == ["raised late", "over late"]
    });
}
