//! What happens to dispatches other than by their consumers' reports; contexts; history.

use pg_recur_tests::queue::{
    claim_this, idle_action, let_lease_run_out, queue, queue_for, queue_many, status,
};
use pg_recur_tests::{Cluster, Session};
use serde_json::{Value, json};
use uuid::Uuid;

#[test]
fn recover_gives_up_what_is_old_and_nothing_else() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    queue_many(&mut session, 3);
    session.batch("SELECT count(*) FROM recur.claim(3, lease => '10 days')");
    session.batch("UPDATE recur.live_dispatches SET started_at = now() - interval '2 hours' WHERE payload ->> 'n' <> '3'");
    let waiting = queue(&mut session, "");
    let recovered: i64 = session.value("SELECT recur.recover('1 hour')", &[]);
    assert_eq!(recovered, 2);
    let errors: Vec<String> = session
        .rows("SELECT error FROM recur.dead_letters", &[])
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(errors, ["recovered from restart"; 2]);
    let events: i64 = session.value("SELECT count(*) FROM recur.events WHERE kind = 'dispatch.recovered' AND detail ->> 'reason' = 'recovered from restart'", &[]);
    assert_eq!(events, 2);
    assert_eq!(status(&mut session, waiting), "pending");
    let running: i64 = session.value(
        "SELECT count(*) FROM recur.dispatches WHERE status = 'running'",
        &[],
    );
    assert_eq!(running, 1);
    let again: i64 = session.value("SELECT recur.recover('1 hour')", &[]);
    assert_eq!(again, 0);
    let (state, message, _) = session.error("SELECT recur.recover('-1 s')");
    assert_eq!(
        (state.as_str(), message.as_str()),
        (
            "22023",
            "invalid max_age \"-00:00:01\": must be zero or longer"
        )
    );
}

#[test]
fn cancelling() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let waiting = queue(&mut session, "");
    let row = &session.rows(
        "SELECT status, error FROM recur.cancel($1, 'not needed')",
        &[&waiting],
    )[0];
    assert_eq!(
        (
            row.get::<_, String>(0).as_str(),
            row.get::<_, String>(1).as_str()
        ),
        ("cancelled", "not needed")
    );
    let (state, message, _) = session.error(&format!("SELECT recur.cancel('{waiting}')"));
    assert_eq!(
        (state, message),
        (
            "55000".to_owned(),
            format!("dispatch {waiting} is cancelled already")
        )
    );

    // A running one is asked; its consumer hears of it when it extends, and gives it up.
    for (report, reason) in [
        ("recur.release($1, 1)", "stop"),
        ("recur.fail($1, 1, 'stopped')", "stopped"),
    ] {
        let id = queue(&mut session, "");
        claim_this(&mut session, id);
        let asked: bool = session.value(
            "SELECT cancel_requested FROM recur.cancel($1, 'stop')",
            &[&id],
        );
        assert!(asked);
        let heard: bool = session.value("SELECT cancel_requested FROM recur.extend($1, 1)", &[&id]);
        assert!(heard);
        let ended: String = session.value(&format!("SELECT status FROM {report}"), &[&id]);
        assert_eq!(ended, "cancelled");
        let error: String =
            session.value("SELECT error FROM recur.dispatches WHERE id = $1", &[&id]);
        assert_eq!(error, reason);
    }
    // It may be too late: what is done is done.
    let id = queue(&mut session, "");
    claim_this(&mut session, id);
    session.execute("SELECT recur.cancel($1)", &[&id]);
    session.execute("SELECT recur.complete($1, 1)", &[&id]);
    assert_eq!(status(&mut session, id), "completed");
    // Or its consumer is gone.
    let id = queue(&mut session, "");
    claim_this(&mut session, id);
    session.execute("SELECT recur.cancel($1)", &[&id]);
    let_lease_run_out(&mut session, id);
    session.batch("SELECT recur._expire_leases(clock_timestamp(), 10)");
    assert_eq!(status(&mut session, id), "cancelled");
    // Second thoughts.
    session.execute("SELECT recur.retry($1)", &[&id]);
    assert_eq!(claim_this(&mut session, id), 2);
    let heard: bool = session.value("SELECT cancel_requested FROM recur.extend($1, 2)", &[&id]);
    assert!(!heard);
}

#[test]
fn deleting_an_action_withdraws_what_is_pending() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, "");
    let running = queue_for(&mut session, action);
    claim_this(&mut session, running);
    let waiting = queue_for(&mut session, action);
    session.execute("SELECT recur.delete($1)", &[&action]);
    assert_eq!(status(&mut session, waiting), "cancelled");
    assert_eq!(status(&mut session, running), "running");
    session.execute("SELECT recur.fail($1, 1, 'x', false)", &[&running]);
    assert_eq!(status(&mut session, running), "failed");
}

fn versions(session: &mut Session, action: Uuid) -> Vec<(i32, Option<Value>, Option<Uuid>)> {
    session
        .rows(
            "SELECT version, context, dispatch_id FROM recur.context_history($1, 200)",
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
    let late = queue(
        &mut session,
        &format!("action_id = '{action}', priority = -1"),
    );
    let rows = session.rows(
        "SELECT id, context, context_version FROM recur.claim(2)",
        &[],
    );
    for row in &rows {
        assert_eq!(
            (row.get::<_, Value>(1), row.get::<_, i32>(2)),
            (json!({"page": 1}), 1)
        );
    }
    let (state, message, _) =
        session.error(&format!("SELECT recur.complete('{first}', 1, NULL, '[1]')"));
    assert_eq!(
        (state.as_str(), message.as_str()),
        ("22023", "invalid context \"[1]\": must be a JSON object")
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

    // The other began with what is no longer so. It is not completed, and nothing has changed.
    let (state, message, hint) = session.error(&format!(
        "SELECT recur.complete('{late}', 1, NULL, '{{\"page\": 7}}')"
    ));
    assert_eq!(
        (state, message),
        (
            "RC002".to_owned(),
            format!("the context of dispatch {late} has changed since it was claimed")
        )
    );
    assert_eq!(
        hint,
        "Report a failure, so that it is tried again with the new context, or complete it without one."
    );
    assert_eq!(status(&mut session, late), "running");
    let row = &session.rows("SELECT context, context_version, completed_count FROM recur.recurring_actions WHERE id = $1", &[&action])[0];
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
    session.batch("UPDATE recur.live_dispatches SET available_at = now()");
    let seen: Value = session.value("SELECT context FROM recur.claim(1)", &[]);
    assert_eq!(seen, json!({"page": 2}));
    session.execute("SELECT recur.complete($1, 2)", &[&late]);

    session.execute(
        "SELECT recur.update($1, '{\"context\": {\"page\": 10}}')",
        &[&action],
    );
    let back: Value = session.value(
        "SELECT context FROM recur.restore_context($1, 1)",
        &[&action],
    );
    assert_eq!(back, json!({"page": 1}));
    assert_eq!(
        versions(&mut session, action),
        [
            (4, Some(json!({"page": 1})), None),
            (3, Some(json!({"page": 10})), None),
            (2, Some(json!({"page": 2})), Some(first)),
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
        session.execute("SELECT recur.update($1, jsonb_build_object('context', jsonb_build_object('page', $2::int)))", &[&action, &(1000 + page)]);
    }
    let kept = versions(&mut session, action);
    assert_eq!((kept.len(), kept[0].0, kept[99].0), (100, 114, 15));
}

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
    session.batch("UPDATE recur.finished_dispatches SET finished_at = now() - interval '8 days' WHERE payload ->> 'n' = '1';
                   UPDATE recur.finished_dispatches SET finished_at = now() - interval '2 days' WHERE payload ->> 'n' = '2';
                   UPDATE recur.live_dispatches SET created_at = now() - interval '1 year', available_at = now() - interval '1 year'");
    session.batch("UPDATE recur.history_turns SET opened_at = now() - interval '30 days'");
    let mut purge = |arguments: &str| -> i64 {
        session.value(&format!("SELECT recur.purge({arguments})"), &[])
    };
    assert_eq!(purge(""), 1, "recur.retention is 7 days");
    assert_eq!(purge("'1 day'"), 1);
    assert_eq!(purge("'1 day'"), 0);
    assert_eq!(purge("'0'"), 2);
    let row = &session.rows(
        "SELECT count(*), (SELECT completed_count FROM recur.recurring_actions) FROM recur.dispatches WHERE status IN ('pending', 'running')",
        &[],
    )[0];
    assert_eq!(
        (row.get::<_, i64>(0), row.get::<_, i64>(1)),
        (2, 4),
        "counts survive, and so does what is not finished"
    );
    let (state, message, _) = session.error("SELECT recur.purge('-1 day')");
    assert_eq!(
        (state.as_str(), message.as_str()),
        (
            "22023",
            "invalid older_than \"-1 days\": must be zero or longer"
        )
    );
}

#[test]
fn a_consumer_touches_only_what_belongs_to_its_owners() {
    let cluster = Cluster::start();
    let mut admin = cluster.database("app");
    admin.batch(
        "CREATE ROLE red; CREATE ROLE blue; CREATE ROLE red_worker IN ROLE red; CREATE ROLE blue_worker IN ROLE blue;
         SELECT recur.grant_access('red_worker', 'consumer'); SELECT recur.grant_access('blue_worker', 'consumer');
         SELECT recur.grant_access('red', 'author')",
    );
    let mut author = cluster.session("app");
    author.batch("SET SESSION AUTHORIZATION red");
    let action = idle_action(&mut author, ", context => '{\"n\": 1}', max_attempts => 1");
    let mut mine = || {
        let id = queue_for(&mut admin, action);
        admin.execute("UPDATE recur.live_dispatches SET owner = 'red', lock_group = 'shared', max_attempts = 1 WHERE id = $1", &[&id]);
        id
    };
    let ids = [mine(), mine(), mine(), mine(), mine()];
    let mut red = cluster.session("app");
    red.batch("SET ROLE red_worker");
    let mut blue = cluster.session("app");
    blue.batch("SET ROLE blue_worker");

    assert_eq!(blue.rows("SELECT FROM recur.claim(10)", &[]).len(), 0);
    claim_this(&mut red, ids[0]);
    for report in [
        "complete(%, 1)",
        "fail(%, 1, 'x')",
        "extend(%, 1)",
        "release(%, 1)",
        "cancel(%)",
        "retry(%)",
    ] {
        let sql = format!(
            "SELECT recur.{}",
            report.replace('%', &format!("'{}'", ids[0]))
        );
        assert_eq!(blue.error(&sql).0, "P0002", "{sql}");
    }
    assert_eq!(blue.error("SELECT recur.recover('0')").0, "42501");
    assert_eq!(blue.error("SELECT recur.purge('0')").0, "42501");
    assert_eq!(
        blue.error("SELECT recur._expire_leases(now(), 1)").0,
        "42501"
    );
    assert_eq!(blue.error("INSERT INTO recur.live_dispatches (id, scheduled_at, trigger, provider, action_type, owner) VALUES (gen_random_uuid(), now(), 'enqueue', 'p', 'a', 'red')").0, "42501");
    assert_eq!(
        red.error("UPDATE recur.live_dispatches SET owner = 'blue'")
            .0,
        "42501"
    );
    assert_eq!(
        red.error("UPDATE recur.live_dispatches SET provider = 'p'")
            .0,
        "42501"
    );
    assert_eq!(red.error("DELETE FROM recur.contexts").0, "42501");
    assert_eq!(
        blue.execute(
            "UPDATE recur.progress SET context = '{}', context_version = 9",
            &[]
        ),
        0
    );

    // A group is one for all owners: blue does not see who runs, and waits all the same.
    let other = queue(&mut admin, "owner = 'blue', lock_group = 'shared'");
    assert_eq!(blue.rows("SELECT FROM recur.claim(10)", &[]).len(), 0);

    // Everything that red's consumer needs it can do.
    red.execute("SELECT recur.extend($1, 1)", &[&ids[0]]);
    red.execute(
        "SELECT recur.complete($1, 1, '{}', '{\"n\": 2}')",
        &[&ids[0]],
    );
    claim_this(&mut red, ids[1]);
    red.execute("SELECT recur.release($1, 1)", &[&ids[1]]);
    for (number, id) in [ids[2], ids[3], ids[4]].into_iter().enumerate() {
        assert_eq!(claim_this(&mut red, id), 1);
        let ended: String = red.value(
            "SELECT status FROM recur.fail_many(ARRAY[$1::uuid], ARRAY[1], ARRAY['x'])",
            &[&id],
        );
        assert_eq!(ended, "failed", "{number}");
    }
    red.execute("SELECT recur.retry($1)", &[&ids[2]]);
    red.execute("SELECT recur.cancel($1, 'enough')", &[&ids[2]]);
    assert_eq!(claim_this(&mut red, ids[1]), 2);
    let done: bool = red.value(
        "SELECT accepted FROM recur.complete_many(ARRAY[$1::uuid], ARRAY[2])",
        &[&ids[1]],
    );
    assert!(done);
    assert_eq!(claim_this(&mut blue, other), 1);
    let told: i64 = admin.value(
        "SELECT count(*) FROM recur.events WHERE kind = 'owner.notified' AND owner = 'red'",
        &[],
    );
    assert_eq!(told, 1);
    let row = &admin.rows(
        "SELECT completed_count, failed_count, context FROM recur.recurring_actions WHERE id = $1",
        &[&action],
    )[0];
    assert_eq!(
        (
            row.get::<_, i64>(0),
            row.get::<_, i64>(1),
            row.get::<_, Value>(2)
        ),
        (2, 3, json!({"n": 2}))
    );
}
