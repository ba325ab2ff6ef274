//! History that is removed by hand.

use pg_recur_tests::Cluster;
use pg_recur_tests::queue::{idle_action, queue_many};

#[test]
fn purging_by_hand() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, "");
    queue_many(&mut session, 6);
    session.execute(
        "UPDATE recur.live_dispatches SET action_id = $1",
        &[&action],
    );
    session.batch("SELECT recur.complete(id, attempt) FROM recur.claim(4)");
    session.batch("SELECT FROM recur.claim(1)");
    session.batch(
        "UPDATE recur.finished_dispatches SET finished_at = now() - interval '8 days'
          WHERE payload ->> 'n' = '1';
         UPDATE recur.finished_dispatches SET finished_at = now() - interval '2 days'
          WHERE payload ->> 'n' = '2';
         UPDATE recur.live_dispatches SET created_at = now() - interval '1 year',
                available_at = now() - interval '1 year'",
    );
    session.batch("UPDATE recur.history_turns SET opened_at = now() - interval '30 days'");
    let mut purge = |arguments: &str| -> i64 {
        session.value(&format!("SELECT recur.purge({arguments})"), &[])
    };
    assert_eq!(purge(""), 1, "recur.retention is 7 days");
    assert_eq!(purge("'1 day'"), 1);
    assert_eq!(purge("'1 day'"), 0);
    assert_eq!(purge("'0'"), 2);
    let row = &session.rows(
        "SELECT count(*), (SELECT completed_count FROM recur.recurring_actions) FROM recur.dispatches
          WHERE status IN ('pending', 'running')",
        &[],
    )[0];
    assert_eq!(
        (row.get::<_, i64>(0), row.get::<_, i64>(1)),
        (2, 4),
        "counts survive, and so does what is not finished"
    );
    session.assert_error(
        "SELECT recur.purge('-1 day')",
        "22023",
        "invalid older_than \"-1 days\": must be zero or longer",
    );
}
