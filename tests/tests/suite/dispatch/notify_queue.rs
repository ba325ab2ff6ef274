//! The queue of NOTIFY belongs to the whole server: where others fill it, dispatching goes on without notifications.

use pg_recur_tests::actions::{EVERY_SECOND, create, dispatch_count};
use pg_recur_tests::{Cluster, Session, eventually};
use uuid::Uuid;

fn fires_on(session: &mut Session, action: Uuid) {
    let before = dispatch_count(session, action);
    eventually("it fires", || dispatch_count(session, action) >= before + 2);
}

fn findings(session: &mut Session) -> i64 {
    session.count("recur.doctor() WHERE finding LIKE 'the NOTIFY queue is % full%'")
}

#[test]
fn dispatching_goes_on_without_notifications_where_the_queue_fills_up() {
    // To fill the half of eight gigabytes takes too long: here any page of the queue is too many.
    let cluster = Cluster::preloaded("recur.notify_queue_limit = 0");
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur; LISTEN recur_events; LISTEN filler");
    let action = create(&mut session, "tick", EVERY_SECOND);
    eventually("it is announced", || {
        listener.notification()["id"].is_string()
    });
    assert_eq!(findings(&mut session), 0);

    let mut stuck = cluster.session("app");
    stuck.batch("LISTEN filler");
    stuck.batch("BEGIN; SELECT 1");
    session.batch(
        "SELECT pg_notify('filler', to_jsonb(n || repeat(' ', 7900))::text) FROM generate_series(1, 5) AS n",
    );
    let paused = "the NOTIFY queue is filling up, going on without notifications";
    eventually("it is logged", || cluster.log().contains(paused));
    fires_on(&mut session, action);
    listener.waiting_notifications();
    fires_on(&mut session, action);
    // What sessions and their events announce, too.
    session.batch(
        "SELECT recur.trigger('tick'); SELECT recur.update('tick', '{\"description\": \"d\"}')",
    );
    assert_eq!(
        listener.waiting_notifications(),
        Vec::<serde_json::Value>::new()
    );
    assert_eq!(findings(&mut session), 1);

    stuck.batch("COMMIT");
    eventually("it is announced again", || {
        listener.notification()["id"].is_string()
    });
    assert_eq!(findings(&mut session), 0);
    let log = cluster.log();
    assert_eq!(log.matches(paused).count(), 1, "once in an episode");
    assert_eq!(log.matches("the NOTIFY queue has room again").count(), 1);
}
