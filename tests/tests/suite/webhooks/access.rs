//! Who sees and does what with webhooks; what a dump carries.

use super::{endpoint, send_to};
use pg_recur_tests::{Cluster, Session};

fn prepare(cluster: &Cluster) -> Session {
    let mut admin = cluster.database("app");
    for (role, level) in [
        ("alice", "author"),
        ("mallory", "author"),
        ("looks", "reader"),
        ("works", "consumer"),
        ("delivers", "deliverer"),
        ("boss", "admin"),
    ] {
        admin.batch(&format!(
            "CREATE ROLE {role} LOGIN; SELECT recur.grant_access('{role}', '{level}')"
        ));
    }
    admin
}

#[test]
fn a_deliverer_delivers_for_all_and_sees_nothing_else() {
    let cluster = Cluster::start();
    prepare(&cluster);
    let mut alice = cluster.session_as("alice", "app");
    let mut delivers = cluster.session_as("delivers", "app");
    let secret = endpoint(&mut alice, "crm", "{*}");
    alice.batch("SELECT recur.enqueue_webhook(action_type => 'x', payload => '{\"a\": 1}')");
    let other: uuid::Uuid = alice.value("SELECT recur.enqueue('p', 'a')", &[]);
    delivers.batch("SELECT recur.route_webhooks()");
    let row = &delivers.rows(
        "SELECT id, attempt, owner, secrets FROM recur.claim_webhooks(10)",
        &[],
    )[0];
    let (id, attempt): (uuid::Uuid, i32) = (row.get(0), row.get(1));
    assert_eq!(row.get::<_, String>(2), "alice");
    assert_eq!(row.get::<_, Vec<String>>(3), [secret]);
    delivers.execute("SELECT recur.extend_webhook($1, $2)", &[&id, &attempt]);
    delivers.execute(
        "SELECT recur.report_webhook($1, $2, 'delivered')",
        &[&id, &attempt],
    );
    assert_eq!(
        delivers
            .error_with("SELECT recur.release_webhook($1, 1)", &[&other])
            .0,
        "P0002"
    );
    for refused in [
        "SELECT FROM recur.dispatches",
        "SELECT FROM recur.webhook_endpoints",
        "SELECT FROM recur.recurring_actions",
        "SELECT FROM recur.events",
        "SELECT FROM recur_internal.endpoint_secrets",
        "SELECT FROM recur.claim(1, '{webhook}')",
        "SELECT recur.enqueue('p', 'a')",
        "SELECT recur.create_endpoint('x', 'https://x')",
        "SELECT recur.rotate_webhook_secret('crm', owner => 'alice')",
        "SELECT recur.tick()",
    ] {
        assert_eq!(delivers.error(refused).0, "42501", "{refused}");
    }
    // The actor of what it reports is the deliverer.
    let mut admin = cluster.session("app");
    send_to(&mut alice, "crm");
    let row = &delivers.rows("SELECT id, attempt FROM recur.claim_webhooks(10)", &[])[0];
    let (id, attempt): (uuid::Uuid, i32) = (row.get(0), row.get(1));
    delivers.execute(
        "SELECT recur.report_webhook($1, $2, 'gone')",
        &[&id, &attempt],
    );
    let actor: String = admin.value(
        "SELECT actor FROM recur.events WHERE kind = 'endpoint.disabled'",
        &[],
    );
    assert_eq!(actor, "delivers");
    assert_eq!(
        alice.count("recur.events WHERE kind = 'endpoint.disabled'"),
        1
    );
}

#[test]
fn no_level_but_that_of_deliverers_and_admins_gets_a_secret() {
    let cluster = Cluster::start();
    prepare(&cluster);
    let mut alice = cluster.session_as("alice", "app");
    endpoint(&mut alice, "crm", "{*}");
    send_to(&mut alice, "crm");
    for role in ["alice", "mallory", "looks", "works"] {
        let mut session = cluster.session_as(role, "app");
        for refused in [
            "SELECT recur.claim_webhooks(1)",
            "SELECT recur.route_webhooks()",
            "SELECT recur.report_webhook(gen_random_uuid(), 1, 'delivered')",
            "SELECT recur.release_webhook(gen_random_uuid(), 1)",
            "SELECT recur.extend_webhook(gen_random_uuid(), 1)",
            "SELECT FROM recur_internal.endpoint_secrets",
            "SELECT FROM recur_internal.endpoints",
        ] {
            assert_eq!(session.error(refused).0, "42501", "{role}: {refused}");
        }
    }
    for role in ["looks", "works"] {
        let mut session = cluster.session_as(role, "app");
        assert_eq!(
            session.error("SELECT recur.drop_endpoint('crm')").0,
            "42501",
            "{role}"
        );
        assert_eq!(session.count("recur.webhook_endpoints"), 0, "{role}");
    }
}

#[test]
fn an_endpoint_belongs_to_its_owner() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    let mut alice = cluster.session_as("alice", "app");
    let mut mallory = cluster.session_as("mallory", "app");
    let mut boss = cluster.session_as("boss", "app");
    endpoint(&mut alice, "crm", "{*}");
    assert_eq!(mallory.count("recur.webhook_endpoints"), 0);
    for call in [
        "update_endpoint('crm', '{\"url\": \"https://mallory.example\"}')",
        "update_endpoint('crm', '{\"url\": \"https://mallory.example\"}', 'alice')",
        "drop_endpoint('crm')",
        "drop_endpoint('crm', 'alice')",
        "rotate_webhook_secret('crm', owner => 'alice')",
        "resume_endpoint('crm', 'alice')",
        "create_webhook('w', '@daily', endpoint => 'crm')",
    ] {
        mallory.assert_error(
            &format!("SELECT recur.{call}"),
            "P0002",
            "no endpoint has the name \"crm\"",
        );
    }
    assert_eq!(
        mallory
            .error("SELECT recur.resume_endpoint('operator:erp')")
            .0,
        "42501"
    );
    // The same name is another endpoint.
    endpoint(&mut mallory, "crm", "{*}");
    let (code, message, _) = boss.error("SELECT recur.drop_endpoint('crm')");
    assert_eq!(code, "P0003");
    assert_eq!(
        message,
        "several owners have an endpoint \"crm\": alice, mallory"
    );
    boss.batch("SELECT recur.update_endpoint('crm', '{\"enabled\": false}', 'mallory')");
    assert_eq!(super::state(&mut mallory, "crm"), "disabled");
    assert_eq!(super::state(&mut alice, "crm"), "healthy");
    // A group shares its endpoints.
    admin.batch(
        "CREATE ROLE crew; GRANT crew TO alice; SELECT recur.grant_access('crew', 'author')",
    );
    alice.batch("SET ROLE crew");
    endpoint(&mut alice, "shared", "{*}");
    alice.batch("RESET ROLE; SELECT recur.rotate_webhook_secret('shared')");
    assert_eq!(alice.count("recur.webhook_endpoints"), 2);
}

/// Each dispatch that one owner enqueues takes the time of no other.
#[test]
fn an_owner_with_many_endpoints_is_in_nobodys_way() {
    let cluster = Cluster::start();
    prepare(&cluster);
    let mut alice = cluster.session_as("alice", "app");
    let mut mallory = cluster.session_as("mallory", "app");
    let mut delivers = cluster.session_as("delivers", "app");
    mallory.batch(
        "SELECT count(recur.create_endpoint('e' || n, 'https://x', '{*}')) FROM generate_series(1, 900) AS n;
         SELECT count(recur.enqueue_webhook(action_type => 'x')) FROM generate_series(1, 30)",
    );
    endpoint(&mut alice, "crm", "{*}");
    alice.batch("SELECT recur.enqueue_webhook(action_type => 'x')");
    // A call makes a bounded number of dispatches, and the next one goes on.
    let mut calls = 0;
    loop {
        let row = &delivers.rows(
            "SELECT bound, split, children FROM recur.route_webhooks(\"limit\" => 100)",
            &[],
        )[0];
        let (bound, split, children): (i32, i32, i32) = (row.get(0), row.get(1), row.get(2));
        assert!(children <= 1_900, "{children}");
        if bound + split == 0 {
            break;
        }
        calls += 1;
    }
    assert!(calls > 10, "{calls}");
    // Twenty-seven thousand deliveries wait, and alice's is among the first thousand.
    let owners: Vec<String> = delivers.column("SELECT owner FROM recur.claim_webhooks(1000)", &[]);
    assert!(owners.iter().any(|owner| owner == "alice"));
}

#[test]
fn a_dump_carries_endpoints_with_their_secrets_and_health() {
    let (source, target) = (
        Cluster::preloaded("recur.enabled = off"),
        Cluster::preloaded("recur.enabled = off"),
    );
    let mut session = source.database("app");
    let secret = endpoint(&mut session, "crm", "{*}");
    for _ in 0..5 {
        send_to(&mut session, "crm");
        super::deliver(&mut session, "failed");
    }
    let dump = source.dump("app");
    assert!(dump.contains(&secret));
    target.empty_database("app", "");
    target.run_script("app", &dump);
    let mut restored = target.session("app");
    restored.batch("SELECT recur.arm()");
    assert_eq!(
        restored.count("recur.webhook_endpoints WHERE failures = 5 AND paused_until IS NOT NULL"),
        1
    );
    restored.batch("SELECT recur.resume_endpoint('crm')");
    restored.batch("SELECT recur.enqueue_webhook(endpoint => 'crm')");
    let secrets: Vec<String> = restored.value("SELECT secrets FROM recur.claim_webhooks(1)", &[]);
    assert_eq!(secrets, [secret]);
}
