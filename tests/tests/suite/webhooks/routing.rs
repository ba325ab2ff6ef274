//! Which endpoints get a webhook.

use super::{claim, endpoint, report, route, send, send_to};
use pg_recur_tests::queue::status;
use pg_recur_tests::{Cluster, Session};
use serde_json::Value;
use uuid::Uuid;

fn endpoint_of(session: &mut Session, id: Uuid) -> Option<String> {
    session.value(
        "SELECT endpoint FROM recur.dispatches WHERE id = $1",
        &[&id],
    )
}

fn error_of(session: &mut Session, id: Uuid) -> String {
    session.value("SELECT error FROM recur.dispatches WHERE id = $1", &[&id])
}

#[test]
fn one_match_gets_the_dispatch_itself() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "tasks", "{task:*}");
    endpoint(&mut session, "mails", "{mail:sent}");
    let (task, mail, later) = (
        send(&mut session, "task:created"),
        send(&mut session, "mail:sent"),
        session.value(
            "SELECT recur.enqueue_webhook(action_type => 'task:x', run_at => recur.clock() + interval '1 hour')",
            &[],
        ),
    );
    assert_eq!(route(&mut session), (2, 0, 0, 0));
    assert_eq!(endpoint_of(&mut session, task).as_deref(), Some("tasks"));
    assert_eq!(endpoint_of(&mut session, mail).as_deref(), Some("mails"));
    // What is not due waits: endpoints may change until then.
    assert_eq!(endpoint_of(&mut session, later), None);
    assert_eq!(route(&mut session), (0, 0, 0, 0));
    let mut claimed: Vec<Uuid> = claim(&mut session, 10)
        .into_iter()
        .map(|one| one.0)
        .collect();
    claimed.sort();
    let mut expected = [task, mail];
    expected.sort();
    assert_eq!(claimed, expected);
}

#[test]
fn without_a_match_it_fails_for_good() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "tasks", "{task:*}");
    endpoint(&mut session, "named", "{}");
    session.batch(
        "SELECT recur.create_endpoint('off', 'https://off.example', '{mail:*}', enabled => false)",
    );
    let ids = ["mail:sent", "other"].map(|action_type| send(&mut session, action_type));
    assert_eq!(route(&mut session), (0, 0, 0, 2));
    for id in ids {
        assert_eq!(status(&mut session, id), "failed");
        assert_eq!(
            error_of(&mut session, id),
            "no endpoint that is enabled matches the action type"
        );
    }
    // It is a dead letter like any other: tried again, it finds the endpoint that was missing.
    assert_eq!(session.count("recur.dead_letters"), 2);
    session.batch("SELECT recur.update_endpoint('off', '{\"enabled\": true}')");
    session.execute("SELECT recur.retry($1)", &[&ids[0]]);
    assert_eq!(route(&mut session), (1, 0, 0, 0));
    assert_eq!(endpoint_of(&mut session, ids[0]).as_deref(), Some("off"));
}

#[test]
fn several_matches_become_a_dispatch_each_in_one_transaction() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for name in ["a", "b", "c"] {
        endpoint(&mut session, name, "{task:*}");
    }
    let parent: Uuid = session.value(
        "SELECT recur.enqueue_webhook(payload => '{\"n\": 12345678901234567890.10}', action_type => 'task:created',
                                      name => 'a task', labels => '{\"team\": \"red\"}', metadata => '{\"m\": \"1\"}',
                                      subject => 's', dedup_key => 'k', priority => 7, max_attempts => 4)",
        &[],
    );
    session.batch("BEGIN");
    assert_eq!(route(&mut session), (0, 1, 3, 0));
    session.batch("ROLLBACK");
    assert_eq!(status(&mut session, parent), "pending");
    assert_eq!(route(&mut session), (0, 1, 3, 0));
    assert_eq!(status(&mut session, parent), "completed");
    let rows = session.rows(
        "SELECT id, endpoint, payload::text, name, labels::text, metadata::text, subject, dedup_key, priority,
                max_attempts, action_type, trigger
           FROM recur.dispatches WHERE parent_id = $1 ORDER BY endpoint",
        &[&parent],
    );
    assert_eq!(rows.len(), 3);
    let result: Value = session.value(
        "SELECT result FROM recur.dispatches WHERE id = $1",
        &[&parent],
    );
    for (place, row) in rows.iter().enumerate() {
        let id: Uuid = row.get(0);
        let name: String = row.get(1);
        assert_eq!(name, ["a", "b", "c"][place]);
        assert_eq!(result["children"][place]["id"], id.to_string());
        assert_eq!(result["children"][place]["endpoint"], name);
        assert_eq!(row.get::<_, String>(2), "{\"n\": 12345678901234567890.10}");
        assert_eq!(row.get::<_, String>(3), "a task");
        assert_eq!(row.get::<_, String>(4), "{\"team\": \"red\"}");
        assert_eq!(row.get::<_, String>(5), "{\"m\": \"1\"}");
        assert_eq!(row.get::<_, String>(6), "s");
        assert_eq!(
            row.get::<_, Option<String>>(7),
            None,
            "nothing merges with a child"
        );
        assert_eq!((row.get::<_, i32>(8), row.get::<_, i32>(9)), (7, 4));
        assert_eq!(row.get::<_, String>(10), "task:created");
        assert_eq!(row.get::<_, String>(11), "enqueue");
    }
    // Each fails or succeeds by itself.
    let claimed = claim(&mut session, 10);
    assert_eq!(claimed.len(), 3);
    for (id, attempt, name) in claimed {
        let (outcome, expected) = match name.as_str() {
            "a" => ("delivered", "completed"),
            "b" => ("failed", "pending"),
            _ => ("gone", "failed"),
        };
        assert_eq!(report(&mut session, id, attempt, outcome), expected);
    }
}

#[test]
fn children_count_for_neither_runs_nor_overlap() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "a", "{*}");
    endpoint(&mut session, "b", "{*}");
    let action: Uuid = session.value(
        "SELECT recur.create_webhook('w', 'at 2099-01-01T00:00:00', payload => '{}', max_runs => 2,
                                     count_runs => 'completed', overlap => 'skip')",
        &[],
    );
    let trigger = "SELECT recur.trigger($1::uuid)";
    for _ in 0..2 {
        session.execute(trigger, &[&action]);
        // While the parent is unfinished, another one gives way.
        assert_eq!(session.error_with(trigger, &[&action]).0, "55000");
        assert_eq!(route(&mut session), (0, 1, 2, 0));
    }
    let counted = &session.rows(
        "SELECT completed_count, enabled, ended_reason FROM recur.recurring_actions WHERE id = $1",
        &[&action],
    )[0];
    assert_eq!(counted.get::<_, i64>(0), 2);
    assert_eq!(
        counted.get::<_, Option<String>>(2).as_deref(),
        Some("exhausted")
    );
    assert_eq!(
        session.count("recur.dispatches WHERE status = 'pending'"),
        4
    );
    // What consumers see of the action is there all the same.
    let metadata: Vec<Value> = session.column("SELECT metadata FROM recur.claim_webhooks(10)", &[]);
    assert_eq!(metadata.len(), 4);
    for one in metadata {
        assert_eq!(one["_recurring_id"], action.to_string());
    }
}

#[test]
fn a_webhook_waits_while_its_owner_has_enough_that_is_pending() {
    let cluster = Cluster::with("recur.max_pending_per_owner = 4");
    let mut session = cluster.test_database("app");
    session.batch("SELECT recur.set_clock('2031-01-01Z')");
    for name in ["a", "b", "c"] {
        endpoint(&mut session, name, "{many}");
    }
    endpoint(&mut session, "d", "{one}");
    let (first, second) = (send(&mut session, "many"), send(&mut session, "many"));
    assert_eq!(route(&mut session), (0, 1, 3, 0));
    assert_eq!(status(&mut session, first), "completed");
    assert_eq!(status(&mut session, second), "pending");
    // Three children, and the one that has become none.
    let refused = session.error("SELECT recur.enqueue_webhook(action_type => 'one')");
    assert_eq!(refused.0, "53400");
    let claimed = claim(&mut session, 10);
    assert_eq!(claimed.len(), 3);
    for (id, attempt, _) in &claimed[..2] {
        report(&mut session, *id, *attempt, "delivered");
    }
    // What goes to one endpoint does not wait for that which becomes several.
    send(&mut session, "one");
    assert_eq!(route(&mut session), (1, 0, 0, 0));
    session.batch("SELECT recur.set_clock('2031-01-01T00:00:59Z')");
    assert_eq!(route(&mut session), (0, 0, 0, 0));
    session.batch("SELECT recur.set_clock('2031-01-01T00:01:00Z')");
    assert_eq!(route(&mut session), (0, 1, 3, 0));
    // An owner for whom nothing waits may have more than the limit by one webhook, which would be there for ever.
    for (id, attempt, _) in claim(&mut session, 10) {
        report(&mut session, id, attempt, "delivered");
    }
    endpoint(&mut session, "e", "{many}");
    endpoint(&mut session, "f", "{many}");
    send(&mut session, "many");
    assert_eq!(route(&mut session), (0, 1, 5, 0));
}

#[test]
fn owners_share_what_one_call_makes() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "CREATE ROLE webhook_late LOGIN; SELECT recur.grant_access('webhook_late', 'author');
         SELECT recur.create_endpoint('e' || n, 'https://e.example', '{*}') FROM generate_series(1, 20) AS n;
         SELECT recur.enqueue_webhook(action_type => 'x') FROM generate_series(1, 30)",
    );
    let mut late = cluster.session_as("webhook_late", "app");
    endpoint(&mut late, "a", "{*}");
    endpoint(&mut late, "b", "{*}");
    let id = send(&mut late, "x");
    // 310 for two owners: 155 for each, and what the last one has more.
    let row = &session.rows(
        "SELECT bound, split, children, unmatched FROM recur.route_webhooks(\"limit\" => 31)",
        &[],
    )[0];
    assert_eq!(status(&mut late, id), "completed");
    assert_eq!(
        (
            row.get::<_, i32>(0),
            row.get::<_, i32>(1),
            row.get::<_, i32>(2),
            row.get::<_, i32>(3)
        ),
        (0, 9, 162, 0)
    );
    // Large ones are fewer in one call: 1 MB each, for twenty endpoints.
    while route(&mut session).1 > 0 {}
    session.batch("SELECT recur.revoke_access('webhook_late'); DROP OWNED BY webhook_late; DROP ROLE webhook_late");
    session.batch(
        "SELECT recur.enqueue_webhook(action_type => 'x', payload => to_jsonb(p.text))
           FROM (SELECT string_agg(md5(n::text), '') AS text FROM generate_series(1, 30000) AS n) AS p,
                generate_series(1, 5)",
    );
    let calls: Vec<i32> = (0..3).map(|_| route(&mut session).1).collect();
    assert_eq!(calls, [4, 1, 0]);
}

#[test]
fn a_backlog_of_one_owner_leaves_room_for_others() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "a", "{*}");
    for _ in 0..10 {
        send(&mut session, "x");
    }
    let roles = ["webhook_behind", "webhook_far_behind"];
    let ids = roles.map(|role| {
        session.batch(&format!(
            "CREATE ROLE {role} LOGIN; SELECT recur.grant_access('{role}', 'author')"
        ));
        let mut other = cluster.session_as(role, "app");
        endpoint(&mut other, "a", "{*}");
        send(&mut other, "x")
    });
    let call = "SELECT bound FROM recur.route_webhooks(\"limit\" => 4)";
    let bound: i32 = session.value(call, &[]);
    assert_eq!(bound, 4);
    for id in ids {
        assert_eq!(endpoint_of(&mut session, id).as_deref(), Some("a"));
    }
    let bound: Vec<i32> = (0..3).map(|_| session.value(call, &[])).collect();
    assert_eq!(bound, [4, 4, 0]);
    for role in roles {
        session.batch(&format!(
            "SELECT recur.revoke_access('{role}'); DROP ROLE {role}"
        ));
    }
}

#[test]
fn another_owners_star_gets_nothing() {
    let cluster = Cluster::quiet();
    let mut admin = cluster.database("app");
    admin.batch(
        "CREATE ROLE webhook_alice LOGIN; CREATE ROLE webhook_bob LOGIN;
         SELECT recur.grant_access('webhook_alice', 'author'); SELECT recur.grant_access('webhook_bob', 'author')",
    );
    let mut alice = cluster.session_as("webhook_alice", "app");
    let mut bob = cluster.session_as("webhook_bob", "app");
    endpoint(&mut bob, "all", "{*}");
    let of_alice = send(&mut alice, "task");
    assert_eq!(route(&mut admin), (0, 0, 0, 1));
    assert_eq!(status(&mut alice, of_alice), "failed");
    // Of the same name, each gets its owner's.
    endpoint(&mut alice, "all", "{*}");
    let (one, other) = (send(&mut alice, "task"), send(&mut bob, "task"));
    assert_eq!(route(&mut admin), (2, 0, 0, 0));
    let claimed = admin.rows(
        "SELECT id, owner, secrets[1] FROM recur.claim_webhooks(10)",
        &[],
    );
    for row in &claimed {
        let owner: String = row.get(1);
        let expected = if row.get::<_, Uuid>(0) == one {
            "webhook_alice"
        } else {
            "webhook_bob"
        };
        assert_eq!(owner, expected);
    }
    assert_ne!(
        claimed[0].get::<_, String>(2),
        claimed[1].get::<_, String>(2)
    );
    assert_ne!(one, other);
    // An endpoint of another owner can not be named.
    bob.batch("SELECT recur.create_endpoint('private', 'https://b.example')");
    assert_eq!(
        alice
            .error("SELECT recur.enqueue_webhook(endpoint => 'private')")
            .0,
        "P0002"
    );
    admin.batch(
        "DROP OWNED BY webhook_alice, webhook_bob; SELECT recur.revoke_access('webhook_alice');
         SELECT recur.revoke_access('webhook_bob'); DROP ROLE webhook_alice, webhook_bob",
    );
}

#[test]
fn an_operators_endpoints_are_chosen_by_pattern_and_owner() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "own", "{mail:*}");
    let route = "SELECT bound, split, children, unmatched FROM recur.route_webhooks($1)";
    let operator = serde_json::json!([
        {"name": "erp", "patterns": ["task:*"], "owners": ["postgres"], "concurrency": 1},
        {"name": "log", "patterns": ["mail:*"]},
        {"name": "other", "patterns": ["*"], "owners": ["somebody"]},
    ]);
    for action_type in ["task:a", "task:b", "mail:a"] {
        send(&mut session, action_type);
    }
    let row = &session.rows(route, &[&operator])[0];
    assert_eq!(
        (
            row.get::<_, i32>(0),
            row.get::<_, i32>(1),
            row.get::<_, i32>(2)
        ),
        (2, 1, 2)
    );
    let claim = "SELECT endpoint, url IS NULL, secrets IS NULL
           FROM recur.claim_webhooks(10, operator => $1) ORDER BY 1";
    // A program that does not know them leaves them to others.
    let none = serde_json::json!([]);
    let names: Vec<String> = session.column(claim, &[&none]);
    assert_eq!(names, ["own"]);
    let rows = session.rows(claim, &[&operator]);
    let names: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(names, ["operator:erp", "operator:log"], "one at once");
    assert!(rows.iter().all(|row| row.get(1) && row.get(2)));
    for (bad, problem) in [
        (
            serde_json::json!({"priority": 1}),
            "must be a list of endpoints",
        ),
        (
            serde_json::json!([{"name": "x"}]),
            "is no endpoint of an operator",
        ),
    ] {
        let (code, message, _) = session.error_with(route, &[&bad]);
        assert_eq!(code, "22023");
        assert!(message.ends_with(problem), "{message}");
    }
}

#[test]
fn what_waits_for_an_endpoint_that_is_gone_fails_for_good() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "a", "{}");
    endpoint(&mut session, "b", "{}");
    let (gone, stays) = (send_to(&mut session, "a"), send_to(&mut session, "b"));
    session.batch("SELECT recur.drop_endpoint('a')");
    let claimed = claim(&mut session, 10);
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].0, stays);
    assert_eq!(status(&mut session, gone), "failed");
    assert_eq!(
        error_of(&mut session, gone),
        "the endpoint does not exist any more"
    );
}

#[test]
fn two_routers_share_the_work() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mut other = cluster.session("app");
    endpoint(&mut session, "a", "{*}");
    for _ in 0..4 {
        send(&mut session, "x");
    }
    session.batch("BEGIN");
    let routed: i32 = session.value(
        "SELECT bound FROM recur.route_webhooks(\"limit\" => 3)",
        &[],
    );
    assert_eq!(routed, 3);
    assert_eq!(route(&mut other), (1, 0, 0, 0));
    session.batch("COMMIT");
    assert_eq!(claim(&mut other, 10).len(), 4);
}

#[test]
fn programs_that_deliver_are_told() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mut listener = cluster.session("app");
    endpoint(&mut session, "a", "{*}");
    endpoint(&mut session, "b", "{*}");
    send(&mut session, "x");
    listener.batch("LISTEN recur");
    route(&mut session);
    let told = listener.notification();
    assert_eq!(
        (&told["provider"], &told["count"]),
        (&"webhook".into(), &2.into())
    );
}
