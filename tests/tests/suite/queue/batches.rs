//! Reporting on many at once.

use pg_recur_tests::queue::{claimed, enqueue, idle_action, let_lease_run_out, queue_for};
use pg_recur_tests::{Cluster, Session};
use serde_json::{Value, json};
use uuid::Uuid;

/// For each report whether it was accepted, the state of the dispatch, and the problem.
type Answer = (Uuid, bool, Option<String>, Option<String>);

fn answers(session: &mut Session, sql: &str, ids: &[Uuid], attempts: &[i32]) -> Vec<Answer> {
    session
        .rows(sql, &[&ids, &attempts])
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2), row.get(3)))
        .collect()
}

#[test]
fn each_completion_of_a_batch_has_its_own_answer() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, "");
    for _ in 0..4 {
        queue_for(&mut session, action);
    }
    let ids = claimed(&mut session, "4");
    let unknown = Uuid::nil();
    let_lease_run_out(&mut session, ids[2]);

    let answered = answers(
        &mut session,
        "SELECT * FROM recur.complete_many($1, $2, ARRAY['1', '2', '3', '4', '5', '6']::jsonb[])",
        &[ids[1], ids[0], ids[2], unknown, ids[0], ids[3]],
        &[1, 1, 1, 1, 1, 7],
    );
    let completed = Some("completed".to_owned());
    assert_eq!(answered[0], (ids[1], true, completed.clone(), None));
    assert_eq!(answered[1], (ids[0], true, completed.clone(), None));
    assert_eq!(
        (answered[2].1, answered[2].2.as_deref()),
        (false, Some("running"))
    );
    assert_eq!(
        answered[3],
        (
            unknown,
            false,
            None,
            Some(format!("no dispatch has the id {unknown}"))
        )
    );
    // The second report on the same dispatch comes too late.
    assert_eq!(
        answered[4],
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
        (answered[5].1, answered[5].2.as_deref()),
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
}

#[test]
fn each_failure_of_a_batch_has_its_own_answer() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let [last, first, unwanted, done] =
        [1, 2, 2, 2].map(|attempts| enqueue(&mut session, &format!("max_attempts => {attempts}")));
    assert_eq!(claimed(&mut session, "4"), [last, first, unwanted, done]);
    session.execute("SELECT recur.complete($1, 1)", &[&done]);
    session.execute("SELECT recur.cancel($1)", &[&unwanted]);
    let answered = answers(
        &mut session,
        "SELECT * FROM recur.fail_many($1, $2, ARRAY['a', 'b', 'c', 'd'])",
        &[last, first, unwanted, done],
        &[1, 1, 1, 1],
    );
    let now: Vec<_> = answered
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
}

#[test]
fn arrays_of_different_lengths_are_refused() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
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

#[test]
fn results_are_read_from_arrays_that_begin_anywhere() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for (results, number) in [
        ("'[0:0]={7}'", 1),
        ("'[5:6]={7,7}'", 2),
        ("'{{7},{7}}'", 2),
        ("'{7}'", 1),
    ] {
        for _ in 0..number {
            enqueue(&mut session, "");
        }
        session.batch(&format!(
            "WITH c AS MATERIALIZED (SELECT * FROM recur.claim({number}))
             SELECT recur.complete_many(array_agg(id), array_agg(attempt), {results}::jsonb[]) FROM c"
        ));
        let lost = session.count("recur.dispatches WHERE result IS DISTINCT FROM '7'");
        assert_eq!(lost, 0, "{results}");
    }
}
