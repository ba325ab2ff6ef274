//! What may wait for locks is done by a process of its own, which comes and goes.

use pg_recur_tests::workers::{dispatcher, starts_to_fire};
use pg_recur_tests::{Cluster, Session, eventually};

/// The history is due for its next partition; the first dispatcher looks when it starts.
fn let_partition_be_due(session: &mut Session) {
    eventually("the first partition is open", || {
        session.count("recur_internal.history_partitions") > 0
    });
    session.batch(
        "UPDATE recur_internal.history_partitions SET opened_at = opened_at - interval '2 days';
         SELECT pg_terminate_backend(pid) FROM recur.workers WHERE kind = 'dispatcher'",
    );
}

fn written_partition(session: &mut Session) -> i16 {
    session.value("SELECT recur_internal.history_partition()", &[])
}

#[test]
fn a_maintenance_process_opens_the_next_partition_and_leaves() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    starts_to_fire(&mut session, "tick");
    assert_eq!(written_partition(&mut session), 0);
    let_partition_be_due(&mut session);
    eventually("the next partition is written", || {
        written_partition(&mut session) == 1
    });
    eventually("the maintenance process has left", || {
        session.count("recur.workers WHERE kind = 'maintenance'") == 0
    });
}

#[test]
fn maintenance_waits_for_a_lock_and_the_dispatcher_does_not() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    starts_to_fire(&mut session, "tick");
    let mut reader = cluster.session("app");
    reader.batch("BEGIN; SELECT FROM recur_internal.finished_dispatches_1");
    let_partition_be_due(&mut session);
    eventually("the maintenance process waits", || {
        session.count(
            "pg_stat_activity WHERE backend_type = 'pg_recur maintenance' AND wait_event_type = 'Lock'",
        ) > 0
    });
    eventually("it gives up", || {
        cluster
            .log()
            .contains("pg_recur maintenance: retention failed database=\"app\" sqlstate=55P03")
    });
    let before = session.count("recur.dispatches");
    eventually("the dispatcher goes on", || {
        session.count("recur.dispatches") > before
    });
    let pid = dispatcher(&mut session, "app");
    assert_eq!(written_partition(&mut session), 0);
    reader.batch("ROLLBACK");
    // It looks again once a minute, and when it starts.
    session.execute("SELECT pg_terminate_backend($1)", &[&pid]);
    eventually("the next partition is written", || {
        written_partition(&mut session) == 1
    });
}
