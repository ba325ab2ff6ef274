//! The findings of recur.doctor.

use pg_recur_tests::{Cluster, eventually};

#[test]
fn the_doctor_finds_what_is_wrong() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.create('late', '@yearly', 'p', 't');
         UPDATE recur_internal.timers SET next_run_at = now() - interval '1 hour', due_at = now() - interval '1 hour'",
    );
    let findings = session.texts(
        "SELECT severity || ': ' || finding FROM recur.doctor()",
        &[],
    );
    assert_eq!(
        findings[0],
        "error: recur.enabled is off: nothing fires by itself"
    );
    assert!(
        findings[1]
            .starts_with("error: 1 actions are overdue by more than a minute, the oldest since "),
        "{findings:?}"
    );
    assert_eq!(findings.len(), 2);
    let live = Cluster::start();
    let mut session = live.database("app");
    session.batch("SELECT recur.create('fine', '@yearly', 'p', 't')");
    eventually("all is well", || {
        session.rows("SELECT FROM recur.doctor()", &[]).is_empty()
    });
}
