//! Cancelling, and what becomes of the dispatches of a deleted action.

use pg_recur_tests::Cluster;
use pg_recur_tests::queue::{claim_this, idle_action, let_lease_run_out, queue, queue_for, status};

#[test]
fn cancelling() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let waiting = queue(&mut session, "");
    let row = &session.rows(
        "SELECT status, error FROM recur.cancel($1, 'not needed')",
        &[&waiting],
    )[0];
    assert_eq!(
        (
            row.get::<_, String>(0).as_str(),
            row.get::<_, String>(1).as_str()
        ),
        ("cancelled", "not needed")
    );
    session.assert_error(
        &format!("SELECT recur.cancel('{waiting}')"),
        "55000",
        &format!("dispatch {waiting} is cancelled already"),
    );

    // A running one is asked; its consumer hears of it when it extends, and gives it up.
    for (report, reason) in [
        ("recur.release($1, 1)", "stop"),
        ("recur.fail($1, 1, 'stopped')", "stopped"),
    ] {
        let id = queue(&mut session, "");
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
        let error: String =
            session.value("SELECT error FROM recur.dispatches WHERE id = $1", &[&id]);
        assert_eq!(error, reason);
    }
    // It may be too late: what is done is done.
    let id = queue(&mut session, "");
    claim_this(&mut session, id);
    session.execute("SELECT recur.cancel($1)", &[&id]);
    session.execute("SELECT recur.complete($1, 1)", &[&id]);
    assert_eq!(status(&mut session, id), "completed");
    // Or its consumer is gone.
    let id = queue(&mut session, "");
    claim_this(&mut session, id);
    session.execute("SELECT recur.cancel($1)", &[&id]);
    let_lease_run_out(&mut session, id);
    session.batch("SELECT recur._expire_leases(clock_timestamp(), 10)");
    assert_eq!(status(&mut session, id), "cancelled");
    // Second thoughts.
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
    session.execute("SELECT recur.delete($1)", &[&action]);
    assert_eq!(status(&mut session, waiting), "cancelled");
    assert_eq!(status(&mut session, running), "running");
    session.execute("SELECT recur.fail($1, 1, 'x', false)", &[&running]);
    assert_eq!(status(&mut session, running), "failed");
}
