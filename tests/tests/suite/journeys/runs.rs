//! Runs of a scheduled journey: what consumers see, and what they report.

use super::{BILLING, schedule, set};
use pg_recur_tests::actions::row;
use pg_recur_tests::{Cluster, Session};
use serde_json::{Value, json};
use uuid::Uuid;

fn scheduled(cluster: &Cluster) -> (Session, Uuid) {
    let mut session = cluster.database("app");
    set(&mut session, "1", BILLING);
    let id = session.value(
        &schedule(", max_runs => 3, subject => 's', metadata => '{\"team\": \"red\", \"_journey\": \"forged\"}'"),
        &[],
    );
    (session, id)
}

/// Claims one: the dispatch and its attempt.
fn claim(session: &mut Session) -> (Uuid, i32) {
    let row = &session.rows("SELECT id, attempt FROM recur.claim(1)", &[])[0];
    (row.get(0), row.get(1))
}

#[test]
fn a_dispatch_says_where_the_run_starts() {
    let cluster = Cluster::quiet();
    let (mut session, action) = scheduled(&cluster);
    session.execute("SELECT recur.trigger($1::uuid)", &[&action]);
    session.execute("SELECT recur.tick()", &[]);
    let metadata: Vec<Value> = session.column("SELECT metadata FROM recur.claim(10)", &[]);
    assert!(!metadata.is_empty());
    for one in metadata {
        assert_eq!(
            one,
            json!({
                "team": "red", "_recurring_dispatch": "true", "_recurring_id": action.to_string(),
                "_journey": "billing", "_journey_version": "1", "_start_state": "charge",
            })
        );
    }
}

#[test]
fn each_run_starts_with_the_context_that_the_last_one_left() {
    let cluster = Cluster::quiet();
    let (mut session, action) = scheduled(&cluster);
    for run in 0..2 {
        session.execute("SELECT recur.trigger($1::uuid)", &[&action]);
        let claimed = &session.rows("SELECT id, attempt, context FROM recur.claim(1)", &[])[0];
        let (id, attempt): (Uuid, i32) = (claimed.get(0), claimed.get(1));
        assert_eq!(claimed.get::<_, Value>(2), json!({"n": run}));
        session.execute(
            "SELECT recur.complete($1, $2, context => $3)",
            &[&id, &attempt, &json!({"n": run + 1})],
        );
    }
    assert_eq!(row(&mut session, action)["context"], json!({"n": 2}));
}

#[test]
fn a_run_that_meets_an_interactive_state_fails_for_good_and_is_counted() {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let (mut session, action) = scheduled(&cluster);
    session.execute("SELECT recur.trigger($1::uuid)", &[&action]);
    let (id, attempt) = claim(&mut session);
    let call = "SELECT status FROM recur.fail_interactive($1, $2, $3)";
    for (state, message) in [
        (None, "invalid state \"NULL\": must have a value"),
        (Some(""), "invalid state \"\": must not be empty"),
    ] {
        assert_eq!(
            session.error_with(call, &[&id, &attempt, &state]).1,
            message
        );
    }
    // A report of another attempt is none.
    assert_eq!(
        session.error_with(call, &[&id, &(attempt + 1), &"agree"]).0,
        "RC001"
    );
    // What is rolled back is not counted.
    session.batch("BEGIN");
    session.execute(call, &[&id, &attempt, &"agree"]);
    session.batch("ROLLBACK");
    assert_eq!(
        session.value::<String>(call, &[&id, &attempt, &"agree"]),
        "failed"
    );
    let failed = &session.rows(
        "SELECT status, error FROM recur.dispatches WHERE id = $1",
        &[&id],
    )[0];
    assert_eq!(
        (failed.get(0), failed.get(1)),
        (
            "failed".to_owned(),
            "RC010: state \"agree\" waits for input, and a scheduled run has no one to ask"
                .to_owned()
        )
    );
    let counted = row(&mut session, action);
    assert_eq!(
        (&counted["interactive_count"], &counted["failed_count"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(
        session.value::<i64>("SELECT interactive FROM recur.stats", &[]),
        1
    );
    assert_eq!(
        session.error_with(call, &[&id, &attempt, &"agree"]).0,
        "RC001",
        "it is over"
    );
}

#[test]
fn a_run_that_was_asked_to_stop_is_cancelled_and_not_counted() {
    let cluster = Cluster::quiet();
    let (mut session, action) = scheduled(&cluster);
    session.execute("SELECT recur.trigger($1::uuid)", &[&action]);
    let (id, attempt) = claim(&mut session);
    session.execute("SELECT recur.cancel($1)", &[&id]);
    let status: String = session.value(
        "SELECT status FROM recur.fail_interactive($1, $2, 'agree')",
        &[&id, &attempt],
    );
    assert_eq!(status, "cancelled");
    assert_eq!(row(&mut session, action)["interactive_count"], json!(0));
    // A run of no action, or of one that is gone, is reported like any other.
    session.batch("SELECT recur.enqueue('p', 'a')");
    let (id, attempt) = claim(&mut session);
    session.execute(
        "SELECT recur.fail_interactive($1, $2, 'agree')",
        &[&id, &attempt],
    );
}

#[test]
fn the_number_of_runs_is_a_hard_cap_unless_dispatched_ones_are_counted() {
    let cluster = Cluster::quiet();
    let (mut session, action) = scheduled(&cluster);
    assert_eq!(row(&mut session, action)["count_runs"], json!("completed"));
    let trigger = "SELECT recur.trigger($1::uuid, overlap => 'allow')";
    for _ in 0..3 {
        session.execute(trigger, &[&action]);
    }
    let (code, message, _) = session.error_with(trigger, &[&action]);
    assert_eq!(code, "55000");
    assert!(message.contains("has no run left: of its 3"), "{message}");
    assert_eq!(session.tick("now()"), (0, 1, 0, 0));
    // A run that failed is not counted, and has left its place.
    let (id, attempt) = claim(&mut session);
    session.execute(
        "SELECT recur.fail($1, $2, 'no luck', retry => false)",
        &[&id, &attempt],
    );
    session.execute(trigger, &[&action]);
    assert_eq!(session.error_with(trigger, &[&action]).0, "55000");

    let other: Uuid = session.value(
        &schedule(", max_runs => 1, subject => 't', count_runs => 'dispatched'"),
        &[],
    );
    for _ in 0..2 {
        session.execute(trigger, &[&other]);
    }
}
