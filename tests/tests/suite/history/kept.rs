//! What is kept and counted of finished dispatches, and when the contact of an action is notified.

use pg_recur_tests::Cluster;
use pg_recur_tests::queue::{claim_this, idle_action, queue_for, status};
use serde_json::Value;

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
fn the_contact_is_notified_of_every_third_failure_in_a_row() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, ", contact => 'ops@example.com'");
    let notified =
        "SELECT count(*) FROM recur.events WHERE kind = 'owner.notified' AND action_id = $1";
    for (outcome, expected) in [
        ("fail", 0),
        ("fail", 0),
        ("fail", 1),
        ("fail", 1),
        ("complete", 1),
        ("fail", 1),
        ("fail", 1),
        ("fail", 2),
    ] {
        let id = queue_for(&mut session, action);
        claim_this(&mut session, id);
        session.batch(&if outcome == "fail" {
            format!("SELECT recur.fail('{id}', 1, 'x', false)")
        } else {
            format!("SELECT recur.complete('{id}', 1)")
        });
        let events: i64 = session.value(notified, &[&action]);
        assert_eq!(events, expected, "{outcome}");
    }
    let detail: Value = session.value(
        "SELECT detail FROM recur.events WHERE kind = 'owner.notified' LIMIT 1",
        &[],
    );
    assert_eq!(detail["problem"], "3 dispatches in a row have failed");
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
