//! What is kept and counted of finished dispatches.

use pg_recur_tests::Cluster;
use pg_recur_tests::queue::{claim_this, idle_action, queue_for, status};

#[test]
fn what_is_kept_follows_keep_history_and_all_is_counted() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for (keep, kept) in [
        ("all", "completed failed"),
        ("failures", "failed"),
        ("none", ""),
    ] {
        let action = idle_action(
            &mut session,
            &format!(", keep_history => '{keep}', max_attempts => 1"),
        );
        for outcome in ["complete", "fail"] {
            let id = queue_for(&mut session, action);
            claim_this(&mut session, id);
            session.batch(&if outcome == "fail" {
                format!("SELECT recur.fail('{id}', 1, 'x')")
            } else {
                format!("SELECT recur.complete('{id}', 1)")
            });
        }
        let row = &session.rows(
            "SELECT a.completed_count, a.failed_count,
                    (SELECT coalesce(string_agg(d.status, ' ' ORDER BY d.status), '') FROM recur.dispatches AS d
                      WHERE d.action_id = a.id)
               FROM recur.recurring_actions AS a WHERE a.id = $1",
            &[&action],
        )[0];
        assert_eq!(
            (
                row.get::<_, i64>(0),
                row.get::<_, i64>(1),
                row.get::<_, String>(2).as_str()
            ),
            (1, 1, kept)
        );
    }
}

#[test]
fn a_dispatch_of_a_deleted_action_can_be_completed() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, "");
    let id = queue_for(&mut session, action);
    claim_this(&mut session, id);
    session.execute("SELECT recur.delete($1::uuid)", &[&action]);
    let done: String = session.value(
        "SELECT status FROM recur.complete($1, 1, '{}', '{\"a\": 1}')",
        &[&id],
    );
    assert_eq!(
        (done.as_str(), status(&mut session, id).as_str()),
        ("completed", "completed")
    );
}
