//! Claims go round all endpoints, and no backlog is in the way of another.

use super::{claim, claimed_of_each, endpoint, route, send, send_to};
use pg_recur_tests::queue::{claimed, enqueue};
use pg_recur_tests::{Cluster, Session};
use serde_json::Value;
use uuid::Uuid;

/// Webhooks for an endpoint, quickly.
fn backlog(session: &mut Session, endpoint: &str, number: i32) {
    session.execute(
        "SELECT count(recur.enqueue_webhook(endpoint => $1)) FROM generate_series(1, $2)",
        &[&endpoint, &number],
    );
}

/// How many entries of the queue's indexes were read so far.
fn reads(session: &mut Session) -> i64 {
    session.batch("SELECT pg_stat_force_next_flush()");
    session.value(
        "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE relname = 'live_dispatches'",
        &[],
    )
}

#[test]
fn a_claim_has_all_that_a_delivery_needs() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let secret: String = session.value(
        "SELECT recur.create_endpoint('crm', 'https://crm.example/x', '{*}', headers => '{\"X-Key\": \"1\"}',
                                      timeout => '3 s')",
        &[],
    );
    let id: Uuid = session.value(
        "SELECT recur.enqueue_webhook(payload => '{\"b\":  1.50, \"a\": \"ü\"}', action_type => 'task', name => 'n',
                                      metadata => '{\"traceparent\": \"00-1\"}', subject => 's')",
        &[],
    );
    route(&mut session);
    let row = &session.rows("SELECT * FROM recur.claim_webhooks(5, '1 min', 'me')", &[])[0];
    assert_eq!(row.get::<_, Uuid>("id"), id);
    assert_eq!(
        (
            row.get::<_, i32>("attempt"),
            row.get::<_, i32>("max_attempts")
        ),
        (1, 8)
    );
    assert_eq!(row.get::<_, String>("owner"), "postgres");
    assert_eq!(row.get::<_, String>("url"), "https://crm.example/x");
    assert_eq!(
        row.get::<_, Value>("headers"),
        serde_json::json!({"X-Key": "1"})
    );
    assert_eq!(row.get::<_, Vec<String>>("secrets"), [secret]);
    assert_eq!(
        row.get::<_, String>("payload"),
        "{\"a\": \"ü\", \"b\": 1.50}"
    );
    assert_eq!(
        row.get::<_, Value>("metadata"),
        serde_json::json!({"traceparent": "00-1"})
    );
    assert_eq!(row.get::<_, Option<Vec<u8>>>("raw_payload"), None);
    assert_eq!(row.get::<_, String>("name"), "n");
    let shown = &session.rows(
        "SELECT status, claimed_by, lease_expires_at - started_at BETWEEN '59 s' AND '61 s'
           FROM recur.dispatches WHERE id = $1",
        &[&id],
    )[0];
    assert_eq!(
        (shown.get(0), shown.get(1), shown.get(2)),
        ("running".to_owned(), "me".to_owned(), true)
    );
    // A body that was received is passed on byte for byte.
    session.batch("SELECT recur.receive('webhook', 'task', '\\x00ff', 'text/plain')");
    route(&mut session);
    let row = &session.rows(
        "SELECT raw_payload, content_type FROM recur.claim_webhooks()",
        &[],
    )[0];
    assert_eq!(row.get::<_, Vec<u8>>(0), [0, 255]);
    assert_eq!(row.get::<_, String>(1), "text/plain");
}

#[test]
fn endpoints_take_turns_whatever_waits_for_each() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for (name, number) in [("a", 300), ("b", 3), ("c", 100)] {
        endpoint(&mut session, name, "{}");
        session.execute(
            "SELECT recur.update_endpoint($1, '{\"concurrency\": 1000}')",
            &[&name],
        );
        backlog(&mut session, name, number);
    }
    let each = |session: &mut Session, limit| {
        let each = claimed_of_each(session, limit);
        each.into_iter()
            .map(|(name, number)| format!("{name}{number}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(each(&mut session, 6), "a2 b2 c2");
    // What one leaves goes to the others.
    assert_eq!(each(&mut session, 11), "a6 b1 c4");
    // One at a time, they take turns as well.
    let turns: Vec<String> = (0..4)
        .map(|_| claim(&mut session, 1)[0].2.clone())
        .collect();
    assert!(turns.windows(2).all(|pair| pair[0] != pair[1]), "{turns:?}");
}

#[test]
fn a_backlog_of_20_000_is_in_nobodys_way() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "slow", "{}");
    endpoint(&mut session, "zippy", "{}");
    backlog(&mut session, "slow", 20_000);
    session.batch("ANALYZE recur_internal.live_dispatches");
    // The slow one takes no more.
    assert_eq!(
        claimed_of_each(&mut session, 100),
        [("slow".to_owned(), 10)]
    );
    let id = send_to(&mut session, "zippy");
    let before = reads(&mut session);
    assert_eq!(claim(&mut session, 5)[0].0, id);
    let read = reads(&mut session) - before;
    assert!(read < 500, "{read} entries of indexes were read");
    // Nor is it in the way of consumers that name no provider, or another one.
    let other = enqueue(&mut session, "");
    assert_eq!(claimed(&mut session, "10"), [other]);
    let other = enqueue(&mut session, "");
    assert_eq!(claimed(&mut session, "10, providers => '{test}'"), [other]);
}

/// What runs counts at an endpoint of the operator for all owners: nobody holds it with a lease of a hundred years.
#[test]
fn what_is_bound_to_an_endpoint_is_for_no_other_claim() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "a", "{}");
    let bound = send_to(&mut session, "a");
    let unrouted = send(&mut session, "x");
    for providers in ["{webhook}", "{webhook,test}"] {
        session.batch("BEGIN");
        let arguments = format!("10, providers => '{providers}', lease => '100 years'");
        let taken = claimed(&mut session, &arguments);
        assert_eq!(taken, [unrouted], "{providers}");
        session.batch("ROLLBACK");
    }
    assert_eq!(claim(&mut session, 10)[0].0, bound);
}

#[test]
fn what_is_bound_to_an_endpoint_is_for_no_handler() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "a", "{*}");
    let earlier = send_to(&mut session, "a");
    session.batch(
        "CREATE FUNCTION f(jsonb) RETURNS void LANGUAGE sql AS '';
         SELECT recur.set_handler('*', 'f(jsonb)')",
    );
    let later = send_to(&mut session, "a");
    send(&mut session, "x");
    let run_here = "recur_internal.live_dispatches WHERE in_database";
    assert_eq!(session.count(run_here), 1);
    assert_eq!(route(&mut session), (1, 0, 0, 0));
    assert_eq!(session.count(run_here), 0);
    session.batch("SELECT recur.drop_handler('*'); SELECT recur.set_handler('*', 'f(jsonb)')");
    assert_eq!(session.count(run_here), 0);
    let taken = claim(&mut session, 10).into_iter().map(|one| one.0);
    let taken: Vec<Uuid> = taken.collect();
    assert!(taken.len() == 3 && taken.contains(&earlier) && taken.contains(&later));
}

/// Copies what is in the queue so often, with changes for each number n.
fn copies(session: &mut Session, number: i32, changes: &str) {
    session.execute(
        &format!(
            "INSERT INTO recur_internal.live_dispatches
             SELECT (jsonb_populate_record(l, jsonb_build_object('id', gen_random_uuid(), {changes}))).*
               FROM recur_internal.live_dispatches AS l, generate_series(1, $1) AS n"
        ),
        &[&number],
    );
}

#[test]
fn endpoints_that_are_gone_are_in_nobodys_way() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SET statement_timeout = '20s'");
    endpoint(&mut session, "z", "{}");
    send_to(&mut session, "z");
    // Pages of endpoints that never were.
    copies(&mut session, 250, "'endpoint', 'g' || n");
    let gone = "recur.dispatches WHERE status = 'failed' AND endpoint LIKE 'g%'";
    assert_eq!(claim(&mut session, 1)[0].2, "z");
    assert_eq!(session.count(gone), 250);
    // A session whose last claim ended there goes round once, and comes to an end.
    let id = send_to(&mut session, "z");
    copies(
        &mut session,
        120,
        "'endpoint', 'g' || n, 'status', 'pending'",
    );
    assert_eq!(claim(&mut session, 5)[0].0, id);
    assert!(claim(&mut session, 5).is_empty());
    assert_eq!(
        session.count("recur.dispatches WHERE status = 'pending'"),
        0
    );
}

#[test]
fn an_owner_with_20_000_endpoints_that_are_gone_is_in_nobodys_way() {
    let cluster = Cluster::quiet();
    let mut admin = cluster.database("app");
    endpoint(&mut admin, "a", "{}");
    send_to(&mut admin, "a");
    // They are due in a year.
    copies(
        &mut admin,
        20_001,
        "'endpoint', 'g' || n, 'available_at', now() + interval '1 year'",
    );
    admin.batch(
        "CREATE ROLE webhook_later LOGIN; SELECT recur.grant_access('webhook_later', 'author')",
    );
    let mut later = cluster.session_as("webhook_later", "app");
    endpoint(&mut later, "b", "{}");
    send_to(&mut later, "b");
    let one = |name: &str| (name.to_owned(), 1);
    assert_eq!(claimed_of_each(&mut admin, 10), [one("a"), one("b")]);
    // What waits for nothing is ended step by step.
    let failed = "recur.dispatches WHERE status = 'failed'";
    assert_eq!(admin.count(failed), 500);
    assert!(claim(&mut admin, 10).is_empty());
    assert_eq!(admin.count(failed), 1_000);
    admin.batch("SELECT recur.revoke_access('webhook_later'); DROP ROLE webhook_later");
}

#[test]
fn a_claim_passes_over_few_of_a_busy_lock_group() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "a", "{}");
    session.batch("SELECT recur.enqueue_webhook(endpoint => 'a', lock_group => 'g')");
    copies(&mut session, 5_000, "'endpoint', 'a'");
    session.batch("VACUUM ANALYZE recur_internal.live_dispatches");
    assert_eq!(claim(&mut session, 1).len(), 1);
    let before = reads(&mut session);
    assert!(claim(&mut session, 1).is_empty());
    let read = reads(&mut session) - before;
    assert!(read < 1_000, "{read} entries of indexes were read");
}

#[test]
fn what_waits_for_an_agent_is_not_in_the_way() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "a", "{*}");
    send(&mut session, "x");
    copies(&mut session, 5_000, "'primary_agent', 'ada'");
    let before = reads(&mut session);
    assert_eq!(route(&mut session), (1, 0, 0, 0));
    let read = reads(&mut session) - before;
    assert!(read < 500, "{read} entries of indexes were read");
    // The same behind an endpoint.
    session.batch("UPDATE recur_internal.live_dispatches SET endpoint = 'a'");
    session.batch("VACUUM recur_internal.live_dispatches");
    let before = reads(&mut session);
    assert_eq!(claim(&mut session, 5).len(), 1);
    let read = reads(&mut session) - before;
    assert!(read < 500, "{read} entries of indexes were read");
    // Its agent gets it.
    assert_eq!(
        claimed(&mut session, "3, providers => '{webhook}', agent => 'ada'").len(),
        3
    );
}

#[test]
fn the_highest_priority_goes_first_and_then_the_oldest() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "a", "{}");
    let send = |session: &mut Session, priority: i32, minutes: i32| -> Uuid {
        session.value(
            "SELECT recur.enqueue_webhook(endpoint => 'a', priority => $1,
                                          run_at => recur.clock() + $2::int * interval '1 minute')",
            &[&priority, &minutes],
        )
    };
    send(&mut session, 9, 5);
    let expected = [
        send(&mut session, 5, -1),
        send(&mut session, 0, -3),
        send(&mut session, 0, -2),
        send(&mut session, -4, -9),
    ];
    for id in expected {
        assert_eq!(claim(&mut session, 1)[0].0, id);
    }
    assert!(claim(&mut session, 1).is_empty());
}

#[test]
fn a_lock_group_runs_one_at_a_time() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "a", "{}");
    endpoint(&mut session, "b", "{}");
    for name in ["a", "b", "a"] {
        session.execute(
            "SELECT recur.enqueue_webhook(endpoint => $1, lock_group => 'g')",
            &[&name],
        );
    }
    assert_eq!(claim(&mut session, 10).len(), 1);
    assert!(claim(&mut session, 10).is_empty());
}

#[test]
fn nothing_is_delivered_where_nothing_fires() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    endpoint(&mut session, "a", "{*}");
    send(&mut session, "x");
    for (call, message) in [
        (
            "recur.claim_webhooks(0)",
            "invalid limit \"0\": must be from 1 to 1000",
        ),
        (
            "recur.claim_webhooks(1001)",
            "invalid limit \"1001\": must be from 1 to 1000",
        ),
        (
            "recur.route_webhooks(NULL, -1)",
            "invalid limit \"-1\": must be from 1 to 10000",
        ),
    ] {
        session.assert_error(&format!("SELECT {call}"), "22023", message);
    }
    assert_eq!(
        session.error("SELECT recur.claim_webhooks(1, '-1 s')").0,
        "22023"
    );
}
