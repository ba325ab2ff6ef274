//! The wall clock is set while the dispatcher sleeps.

use chrono::{DateTime, TimeDelta, Utc};
use pg_recur_tests::{Cluster, eventually};
use uuid::Uuid;

#[test]
fn a_clock_that_is_set_back_does_not_delay_the_dispatcher_as_long() {
    let (cluster, clock) = Cluster::with_clock("recur.check_interval = '200ms'");
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");
    session.batch("SELECT recur.create('every second', '* * * * * *', 'p', 't')");
    listener.notification();
    let before: DateTime<Utc> = session.value("SELECT clock_timestamp()", &[]);
    clock.set(-3600);
    let half_an_hour_ago = before - TimeDelta::minutes(30);
    eventually("the dispatcher sleeps by the new clock", || {
        session.value(
            "SELECT state = 'sleeping' AND state_since < $1 FROM recur.workers
              WHERE database = 'app' AND kind = 'dispatcher'",
            &[&half_an_hour_ago],
        )
    });
    // The next second lies an hour ahead now. Set right again, the clock is past it.
    clock.set(0);
    listener.waiting_notifications();
    listener.notification();
}

#[test]
fn a_clock_that_is_set_forward_is_noticed_soon() {
    let (cluster, clock) = Cluster::with_clock("recur.check_interval = '200ms'");
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");
    let id: Uuid = session.value("SELECT recur.create('yearly', '@yearly', 'p', 't')", &[]);
    assert_eq!(listener.waiting_notifications().len(), 0);
    clock.set(400 * 86_400);
    assert_eq!(listener.notification()["action_id"], id.to_string());
}
