//! JSON numbers keep every digit on their way: no part of the queue decodes a payload.

use pg_recur_tests::queue::idle_action;
use pg_recur_tests::{Cluster, Session};
use uuid::Uuid;

/// Numbers that no float holds, and a fraction whose last digit counts.
const NUMBERS: &str =
    r#"{"long": 12345678901234567890.123456789, "large": 1e400, "small": -1e-400, "exact": 0.10}"#;

/// How PostgreSQL prints them.
fn printed(session: &mut Session) -> String {
    session.value(&format!("SELECT '{NUMBERS}'::jsonb::text"), &[])
}

/// This column of the dispatch, wherever it is.
fn stored(session: &mut Session, column: &str, id: Uuid) -> String {
    let sql = format!("SELECT ({column})::text FROM recur.dispatches WHERE id = $1");
    session.value(&sql, &[&id])
}

#[test]
fn numbers_of_an_enqueued_payload_and_its_result_keep_every_digit() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let printed = printed(&mut session);
    let enqueue = format!("SELECT recur.enqueue('p', 't', '{NUMBERS}', dedup_key => 'k')");
    let id: Uuid = session.value(&enqueue, &[]);
    assert_eq!(stored(&mut session, "payload", id), printed);
    // Merged into the pending one.
    assert_eq!(session.value::<Uuid>(&enqueue, &[]), id);
    assert_eq!(stored(&mut session, "payload", id), printed);
    let claimed: String = session.value("SELECT payload::text FROM recur.claim()", &[]);
    assert_eq!(claimed, printed);
    session.execute("SELECT recur.fail($1, 1, 'x', retry => false)", &[&id]);
    let dead: String = session.value("SELECT payload::text FROM recur.dead_letters", &[]);
    assert_eq!(dead, printed);
    session.execute("SELECT recur.retry($1)", &[&id]);
    let claimed: String = session.value("SELECT payload::text FROM recur.claim()", &[]);
    assert_eq!(claimed, printed);
    session.batch(&format!("SELECT recur.complete('{id}', 2, '{NUMBERS}')"));
    assert_eq!(stored(&mut session, "payload", id), printed);
    assert_eq!(stored(&mut session, "result", id), printed);
}

#[test]
fn numbers_of_an_action_and_its_context_keep_every_digit() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let printed = printed(&mut session);
    let arguments = format!(", payload => '{NUMBERS}', context => '{NUMBERS}'");
    let action = idle_action(&mut session, &arguments);
    let own: Uuid = session.value("SELECT recur.trigger($1::uuid)", &[&action]);
    let trigger =
        format!("SELECT recur.trigger('{action}'::uuid, '{NUMBERS}', overlap => 'allow')");
    let given: Uuid = session.value(&trigger, &[]);
    for id in [own, given] {
        let row = &session.rows(
            "SELECT id, payload::text, context::text FROM recur.claim()",
            &[],
        )[0];
        assert_eq!(row.get::<_, Uuid>(0), id);
        assert_eq!(row.get::<_, String>(1), printed);
        assert_eq!(row.get::<_, String>(2), printed);
    }
    session.batch(&format!(
        "SELECT recur.complete('{own}', 1, '{NUMBERS}', '{NUMBERS}')"
    ));
    let row = &session.rows(
        "SELECT context_version, context::text FROM recur.recurring_actions",
        &[],
    )[0];
    assert_eq!(
        (row.get::<_, i32>(0), row.get::<_, String>(1)),
        (2, printed.clone())
    );
    let history = &session.rows(
        "SELECT payload::text, result::text FROM recur.history($1::uuid) WHERE status = 'completed'",
        &[&action],
    )[0];
    assert_eq!(history.get::<_, String>(0), printed);
    assert_eq!(history.get::<_, String>(1), printed);
    let contexts: Vec<String> = session.column(
        "SELECT context::text FROM recur.context_history($1::uuid)",
        &[&action],
    );
    assert_eq!(contexts, [printed.clone(), printed]);
}

#[test]
fn numbers_of_batches_and_headers_keep_every_digit() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let printed = printed(&mut session);
    let receive = format!("SELECT recur.receive('p', 't', '\\x00', headers => '{NUMBERS}')");
    let id: Uuid = session.value(&receive, &[]);
    assert_eq!(stored(&mut session, "payload -> 'headers'", id), printed);
    session.batch(&format!(
        "SELECT recur.complete_many(array_agg(id), array_agg(attempt), ARRAY['{NUMBERS}'::jsonb]) FROM recur.claim()"
    ));
    assert_eq!(stored(&mut session, "result", id), printed);
}
