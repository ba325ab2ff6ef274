//! Attempts, the pauses between them, and a retry by hand.

use chrono::{DateTime, Utc};
use pg_recur_tests::Cluster;
use pg_recur_tests::queue::{claim_this, enqueue, idle_action, queue_for};
use serde_json::{Value, json};

#[test]
fn there_are_exactly_max_attempts_with_pauses_that_grow() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(
        &mut session,
        ", max_attempts => 5,
           retry_backoff => '{\"base\": \"10 seconds\", \"factor\": 3, \"cap\": \"1 minute\"}'",
    );
    let id = queue_for(&mut session, action);
    for (attempt, pause) in (1..).zip([10.0, 30.0, 60.0, 60.0]) {
        assert_eq!(claim_this(&mut session, id), attempt);
        let row = &session.rows(
            "SELECT status, extract(epoch FROM available_at - statement_timestamp())::float8,
                    extract(epoch FROM available_at - clock_timestamp())::float8
               FROM recur.fail($1, $2, 'try ' || $2::int)",
            &[&id, &attempt],
        )[0];
        assert_eq!(row.get::<_, String>(0), "pending");
        // The pause began between these two, however long the statement took.
        let (longest, shortest): (f64, f64) = (row.get(1), row.get(2));
        assert!(
            longest >= pause * 0.9 && shortest <= pause * 1.1,
            "{shortest} to {longest} s"
        );
        // Not before its time.
        assert_eq!(session.rows("SELECT FROM recur.claim(1)", &[]).len(), 0);
        session.batch("UPDATE recur_internal.live_dispatches SET available_at = now()");
    }
    assert_eq!(claim_this(&mut session, id), 5);
    let ended: String = session.value("SELECT status FROM recur.fail($1, 5, 'the last')", &[&id]);
    assert_eq!(ended, "failed");
    let row = &session.rows(
        "SELECT error, errors, finished_at IS NOT NULL FROM recur.dispatches WHERE id = $1",
        &[&id],
    )[0];
    assert_eq!(row.get::<_, String>(0), "the last");
    let errors: Value = row.get(1);
    let reasons: Vec<_> = errors
        .as_array()
        .unwrap()
        .iter()
        .map(|e| (e["attempt"].clone(), e["reason"].clone()))
        .collect();
    assert_eq!(
        reasons,
        [
            (1, "try 1"),
            (2, "try 2"),
            (3, "try 3"),
            (4, "try 4"),
            (5, "the last")
        ]
        .map(|(n, text)| (json!(n), json!(text)))
    );
    assert!(
        errors
            .as_array()
            .unwrap()
            .iter()
            .all(|e| e["at"].is_string())
    );
    assert!(row.get::<_, bool>(2));
    let name: Option<String> =
        session.value("SELECT name FROM recur.dead_letters WHERE id = $1", &[&id]);
    assert!(name.unwrap().starts_with("idle "));
}

#[test]
fn a_failure_without_retry_is_final_until_a_retry_by_hand() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = enqueue(&mut session, "");
    claim_this(&mut session, id);
    let ended: String = session.value(
        "SELECT status FROM recur.fail($1, 1, NULL, retry => false)",
        &[&id],
    );
    assert_eq!(ended, "failed");
    let row = &session.rows(
        "SELECT error, attempt, max_attempts FROM recur.dispatches WHERE id = $1",
        &[&id],
    )[0];
    assert_eq!(row.get::<_, String>(0), "no reason given");

    // By hand it gets one more, at once, and it is announced.
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");
    session.batch(&format!("SELECT recur.retry('{id}')"));
    let heard = listener.notification();
    assert_eq!(heard["id"], id.to_string());
    assert_eq!(heard["provider"], "test");
    assert_eq!(heard["action_type"], "noop");
    assert!(
        heard["scheduled_at"]
            .as_str()
            .unwrap()
            .parse::<DateTime<Utc>>()
            .is_ok()
    );
    assert_eq!(claim_this(&mut session, id), 2);
    session.assert_error(
        &format!("SELECT recur.retry('{id}')"),
        "55000",
        &format!("dispatch {id} is running: only what has failed or was cancelled can be retried"),
    );
    session.execute("SELECT recur.fail($1, 2, 'again', false)", &[&id]);
    session.batch(&format!("SELECT recur.retry('{id}')"));
    assert_eq!(claim_this(&mut session, id), 3);
    session.execute("SELECT recur.fail($1, 3, 'and again')", &[&id]);
    session.batch(&format!("SELECT recur.retry('{id}')"));
    let row = &session.rows(
        "SELECT max_attempts, attempt, jsonb_array_length(errors) FROM recur.dispatches
          WHERE id = $1",
        &[&id],
    )[0];
    assert_eq!(
        (
            row.get::<_, i32>(0),
            row.get::<_, i32>(1),
            row.get::<_, i32>(2)
        ),
        (4, 3, 3)
    );
}
