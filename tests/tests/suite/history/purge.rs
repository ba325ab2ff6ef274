//! History that is removed by hand.

use pg_recur_tests::Cluster;
use pg_recur_tests::queue::idle_action;

#[test]
fn purge_removes_what_finished_before_and_keeps_the_counts() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, "");
    for n in 1..=6 {
        session.execute(
            "SELECT recur.trigger($1::uuid, jsonb_build_object('n', $2::int))",
            &[&action, &n],
        );
    }
    session.batch("SELECT recur.complete(id, attempt) FROM recur.claim(4)");
    session.batch("SELECT FROM recur.claim(1)");
    session.batch(
        "UPDATE recur_internal.finished_dispatches SET finished_at = now() - interval '8 days'
          WHERE payload ->> 'n' = '1';
         UPDATE recur_internal.finished_dispatches SET finished_at = now() - interval '2 days'
          WHERE payload ->> 'n' = '2';
         UPDATE recur_internal.live_dispatches SET created_at = now() - interval '1 year',
                available_at = now() - interval '1 year'",
    );
    session.batch(
        "UPDATE recur_internal.history_partitions SET opened_at = now() - interval '30 days'",
    );
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
