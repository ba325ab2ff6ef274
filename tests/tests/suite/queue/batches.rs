//! Reporting on many at once.

use pg_recur_tests::queue::{idle_action, let_lease_run_out, queue_many};
use pg_recur_tests::{Cluster, Session};
use serde_json::{Value, json};
use uuid::Uuid;

#[test]
fn reports_in_batches() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, "");
    queue_many(&mut session, 6);
    session.execute(
        "UPDATE recur.live_dispatches SET action_id = $1",
        &[&action],
    );
    session.batch(
        "CREATE TABLE mine AS SELECT id, attempt, row_number() OVER () AS n FROM recur.claim(6)",
    );
    let ids: Vec<Uuid> = session.column("SELECT id FROM mine ORDER BY n", &[]);
    let nobody = Uuid::nil();
    let_lease_run_out(&mut session, ids[2]);

    let answer = |session: &mut Session,
                  sql: &str,
                  ids: &[Uuid],
                  attempts: &[i32]|
     -> Vec<(Uuid, bool, Option<String>, Option<String>)> {
        session
            .rows(sql, &[&ids, &attempts])
            .iter()
            .map(|row| (row.get(0), row.get(1), row.get(2), row.get(3)))
            .collect()
    };
    let answers = answer(
        &mut session,
        "SELECT * FROM recur.complete_many($1, $2, ARRAY['1', '2', '3', '4', '5', '6']::jsonb[])",
        &[ids[1], ids[0], ids[2], nobody, ids[0], ids[3]],
        &[1, 1, 1, 1, 1, 7],
    );
    let completed = Some("completed".to_owned());
    assert_eq!(answers[0], (ids[1], true, completed.clone(), None));
    assert_eq!(answers[1], (ids[0], true, completed.clone(), None));
    assert_eq!(
        (answers[2].1, answers[2].2.as_deref()),
        (false, Some("running"))
    );
    assert_eq!(
        answers[3],
        (
            nobody,
            false,
            None,
            Some(format!("no dispatch has the id {nobody}"))
        )
    );
    // The second report on the same dispatch comes too late.
    assert_eq!(
        answers[4],
        (
            ids[0],
            false,
            completed,
            Some(format!(
                "attempt 1 of dispatch {} is not running: It is completed, at attempt 1.",
                ids[0]
            ))
        )
    );
    assert_eq!(
        (answers[5].1, answers[5].2.as_deref()),
        (false, Some("running"))
    );
    let results: Vec<Value> = session.column(
        "SELECT result FROM recur.dispatches WHERE status = 'completed' ORDER BY result",
        &[],
    );
    assert_eq!(results, [json!(1), json!(2)]);
    let count: i64 = session.value(
        "SELECT completed_count FROM recur.recurring_actions WHERE id = $1",
        &[&action],
    );
    assert_eq!(count, 2);

    session.execute(
        "UPDATE recur.live_dispatches SET max_attempts = 1 WHERE id = $1",
        &[&ids[3]],
    );
    session.execute(
        "UPDATE recur.live_dispatches SET cancel_requested = true WHERE id = $1",
        &[&ids[5]],
    );
    let answers = answer(
        &mut session,
        "SELECT * FROM recur.fail_many($1, $2, ARRAY['a', 'b', 'c', 'd'])",
        &[ids[3], ids[4], ids[5], ids[0]],
        &[1, 1, 1, 1],
    );
    let now: Vec<_> = answers
        .iter()
        .map(|a| (a.1, a.2.as_deref().unwrap()))
        .collect();
    assert_eq!(
        now,
        [
            (true, "failed"),
            (true, "pending"),
            (true, "cancelled"),
            (false, "completed")
        ]
    );
    let errors: Vec<String> = session.column(
        "SELECT error FROM recur.dispatches WHERE error IS NOT NULL ORDER BY error",
        &[],
    );
    assert_eq!(errors, ["a", "b", "c"]);

    assert_eq!(
        session
            .rows(
                "SELECT * FROM recur.complete_many('{}'::uuid[], '{}'::int[])",
                &[]
            )
            .len(),
        0
    );
    for (sql, expected) in [
        (
            "SELECT recur.complete_many(ARRAY[gen_random_uuid()], '{1,2}'::int[])",
            "invalid attempts: must have as many elements as ids, 1, and has 2",
        ),
        (
            "SELECT recur.complete_many(ARRAY[gen_random_uuid()], '{1}'::int[], '{}'::jsonb[])",
            "invalid results: must have as many elements as ids, 1, and has 0",
        ),
        (
            "SELECT recur.fail_many(ARRAY[gen_random_uuid()], '{1}'::int[], NULL::text[])",
            "invalid reasons: must have as many elements as ids, 1, and has 0",
        ),
    ] {
        session.assert_error(sql, "22023", expected);
    }
}
