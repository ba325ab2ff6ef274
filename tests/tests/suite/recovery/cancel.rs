//! Cancelling, and what becomes of the dispatches of a deleted action.

use pg_recur_tests::queue::{
    claim_this, enqueue, idle_action, let_lease_run_out, queue_for, status,
};
use pg_recur_tests::{Cluster, Session};
use uuid::Uuid;

fn error(session: &mut Session, id: Uuid) -> String {
    session.value("SELECT error FROM recur.dispatches WHERE id = $1", &[&id])
}

#[test]
fn a_pending_dispatch_is_cancelled_and_a_running_one_is_asked_to_stop() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let waiting = enqueue(&mut session, "");
    let ended: String = session.value(
        "SELECT status FROM recur.cancel($1, 'not needed')",
        &[&waiting],
    );
    assert_eq!(ended, "cancelled");
    assert_eq!(error(&mut session, waiting), "not needed");
    session.assert_error(
        &format!("SELECT recur.cancel('{waiting}')"),
        "55000",
        &format!("dispatch {waiting} is cancelled already"),
    );

    // A running one is asked; its consumer learns that when it extends the lease, and gives the run up.
    for (report, reason) in [
        ("recur.release($1, 1)", "stop"),
        ("recur.fail($1, 1, 'stopped')", "stopped"),
    ] {
        let id = enqueue(&mut session, "");
        claim_this(&mut session, id);
        let asked: bool = session.value(
            "SELECT cancel_requested FROM recur.cancel($1, 'stop')",
            &[&id],
        );
        assert!(asked);
        let heard: bool = session.value("SELECT cancel_requested FROM recur.extend($1, 1)", &[&id]);
        assert!(heard);
        let ended: String = session.value(&format!("SELECT status FROM {report}"), &[&id]);
        assert_eq!(ended, "cancelled");
        assert_eq!(error(&mut session, id), reason);
    }
    // It may be too late: what is done is done.
    let id = enqueue(&mut session, "");
    claim_this(&mut session, id);
    session.execute("SELECT recur.cancel($1)", &[&id]);
    session.execute("SELECT recur.complete($1, 1)", &[&id]);
    assert_eq!(status(&mut session, id), "completed");
    // Or its consumer is gone.
    let id = enqueue(&mut session, "");
    claim_this(&mut session, id);
    session.execute("SELECT recur.cancel($1)", &[&id]);
    let_lease_run_out(&mut session, id);
    session.batch("SELECT recur_internal.expire_leases(clock_timestamp(), 10)");
    assert_eq!(status(&mut session, id), "cancelled");
    // A retry revokes the cancellation.
    session.execute("SELECT recur.retry($1)", &[&id]);
    assert_eq!(claim_this(&mut session, id), 2);
    let heard: bool = session.value("SELECT cancel_requested FROM recur.extend($1, 2)", &[&id]);
    assert!(!heard);
}

#[test]
fn deleting_an_action_withdraws_what_is_pending() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, "");
    let running = queue_for(&mut session, action);
    claim_this(&mut session, running);
    let waiting = queue_for(&mut session, action);
    session.execute("SELECT recur.delete($1::uuid)", &[&action]);
    assert_eq!(status(&mut session, waiting), "cancelled");
    assert_eq!(status(&mut session, running), "running");
    session.execute("SELECT recur.fail($1, 1, 'x', false)", &[&running]);
    assert_eq!(status(&mut session, running), "failed");
}
