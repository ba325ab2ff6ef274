//! The context that an action carries from run to run.

use pg_recur_tests::queue::{claim_this, idle_action, queue, queue_for, status};
use pg_recur_tests::{Cluster, Session};
use serde_json::{Value, json};
use uuid::Uuid;

fn versions(session: &mut Session, action: Uuid) -> Vec<(i32, Option<Value>, Option<Uuid>)> {
    session
        .rows(
            "SELECT version, context, dispatch_id FROM recur.context_history($1::uuid, 200)",
            &[&action],
        )
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect()
}

#[test]
fn a_context_goes_from_run_to_run() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, ", context => '{\"page\": 1}'");
    assert_eq!(
        versions(&mut session, action),
        [(1, Some(json!({"page": 1})), None)]
    );
    let first = queue_for(&mut session, action);
    let row = &session.rows("SELECT context, context_version FROM recur.claim(1)", &[])[0];
    assert_eq!(
        (row.get::<_, Value>(0), row.get::<_, i32>(1)),
        (json!({"page": 1}), 1)
    );
    session.assert_error(
        &format!("SELECT recur.complete('{first}', 1, NULL, '[1]')"),
        "22023",
        "invalid context \"[1]\": must be a JSON object",
    );
    session.execute(
        "SELECT recur.complete($1, 1, NULL, '{\"page\": 2}')",
        &[&first],
    );
    let context: Value = session.value(
        "SELECT context FROM recur.recurring_actions WHERE id = $1",
        &[&action],
    );
    assert_eq!(context, json!({"page": 2}));
}

#[test]
fn a_run_that_began_with_an_older_context_can_not_replace_a_newer_one() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, ", context => '{\"page\": 1}'");
    let first = queue_for(&mut session, action);
    let late = queue(
        &mut session,
        &format!("action_id = '{action}', priority = -1"),
    );
    session.batch("SELECT recur.claim(2)");
    session.execute(
        "SELECT recur.complete($1, 1, NULL, '{\"page\": 2}')",
        &[&first],
    );
    // It is not completed, and nothing has changed.
    let hint = "Report a failure, so that it is tried again with the new context, or complete it without one.";
    let report = format!("SELECT recur.complete('{late}', 1, NULL, '{{\"page\": 7}}')");
    assert_eq!(
        session.error(&report),
        (
            "RC002".to_owned(),
            format!("the context of dispatch {late} has changed since it was claimed"),
            hint.to_owned()
        )
    );
    assert_eq!(status(&mut session, late), "running");
    let row = &session.rows(
        "SELECT context, context_version, completed_count FROM recur.recurring_actions
          WHERE id = $1",
        &[&action],
    )[0];
    assert_eq!(
        (
            row.get::<_, Value>(0),
            row.get::<_, i32>(1),
            row.get::<_, i64>(2)
        ),
        (json!({"page": 2}), 2, 1)
    );
    // A failed run leaves it, and the next one sees the latest.
    session.execute("SELECT recur.fail($1, 1, 'conflict')", &[&late]);
    session.batch("UPDATE recur_internal.live_dispatches SET available_at = now()");
    let seen: Value = session.value("SELECT context FROM recur.claim(1)", &[]);
    assert_eq!(seen, json!({"page": 2}));
    session.execute("SELECT recur.complete($1, 2)", &[&late]);
}

#[test]
fn an_older_context_can_be_restored_and_a_hundred_are_kept() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, ", context => '{\"page\": 1}'");
    let run = queue_for(&mut session, action);
    claim_this(&mut session, run);
    session.execute(
        "SELECT recur.complete($1, 1, NULL, '{\"page\": 2}')",
        &[&run],
    );
    session.execute(
        "SELECT recur.update($1::uuid, '{\"context\": {\"page\": 10}}')",
        &[&action],
    );
    let restored: Uuid = session.value(
        "SELECT id FROM recur.restore_context($1::uuid, 1)",
        &[&action],
    );
    assert_eq!(restored, action);
    let back: Value = session.value("SELECT context FROM recur.get($1::uuid)", &[&action]);
    assert_eq!(back, json!({"page": 1}));
    assert_eq!(
        versions(&mut session, action),
        [
            (4, Some(json!({"page": 1})), None),
            (3, Some(json!({"page": 10})), None),
            (2, Some(json!({"page": 2})), Some(run)),
            (1, Some(json!({"page": 1})), None),
        ]
    );
    let (state, message, _) =
        session.error(&format!("SELECT recur.restore_context('{action}', 99)"));
    assert_eq!(state, "P0002");
    assert!(
        message.ends_with("has no context of version 99"),
        "{message}"
    );
    // A hundred are kept.
    for page in 0..110 {
        session.execute(
            "SELECT recur.update($1::uuid, jsonb_build_object('context', jsonb_build_object('page', $2::int)))",
            &[&action, &(1000 + page)],
        );
    }
    let kept = versions(&mut session, action);
    assert_eq!((kept.len(), kept[0].0, kept[99].0), (100, 114, 15));
}
