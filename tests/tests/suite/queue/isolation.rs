//! What belongs to another owner is in the way of no claim.

use pg_recur_tests::queue::{NONE, claimed, enqueue, enqueue_many};
use pg_recur_tests::{Cluster, Session};

const OTHERS: i32 = 2_000;

/// A server with two owners of their own, and a role that owns nothing.
fn with_two_owners() -> (Cluster, Session) {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let mut admin = cluster.database("app");
    admin.batch("SET stats_fetch_consistency = none");
    for role in ["victim", "neighbour", "idle"] {
        admin.batch(&format!(
            "CREATE ROLE {role} LOGIN; SELECT recur.grant_access('{role}', 'author');
             SELECT recur.grant_access('{role}', 'consumer')"
        ));
    }
    (cluster, admin)
}

/// Entries that claims have read of the indexes of what is pending.
fn entries(session: &mut Session, admin: &mut Session) -> i64 {
    session.batch("SELECT pg_stat_force_next_flush()");
    admin.value(
        "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes
          WHERE indexrelname LIKE 'live_dispatches_claimable%'",
        &[],
    )
}

#[test]
fn a_claim_does_not_read_what_belongs_to_another_owner() {
    let (cluster, mut admin) = with_two_owners();
    let mut neighbour = cluster.session_as("neighbour", "app");
    for arguments in [
        "priority => 100, run_at => now() + interval '1 year'",
        "priority => 100",
        "priority => 100, provider => 'other'",
        "priority => n",
        "run_at => now() - interval '1 day'",
    ] {
        enqueue_many(&mut neighbour, OTHERS, arguments);
    }
    let mut victim = cluster.session_as("victim", "app");
    for filter in [
        "1",
        "1, providers => '{test}'",
        "1, providers => '{test,other}'",
        "1, action_types => '{noop}'",
    ] {
        // Of two claims the second one knows the priority.
        for _ in 0..2 {
            let id = enqueue(&mut victim, "");
            let before = entries(&mut victim, &mut admin);
            assert_eq!(claimed(&mut victim, filter), [id], "{filter}");
            let read = entries(&mut victim, &mut admin) - before;
            assert!(read < 50, "{filter}: {read} entries");
        }
    }
    // A role that sees no owner has nothing to look for.
    let mut idle = cluster.session_as("idle", "app");
    let before = entries(&mut idle, &mut admin);
    assert_eq!(claimed(&mut idle, "10"), NONE);
    assert_eq!(entries(&mut idle, &mut admin), before);
}

#[test]
fn a_role_that_sees_several_owners_claims_in_one_order() {
    let (cluster, mut admin) = with_two_owners();
    admin.batch(
        "CREATE ROLE shared LOGIN; GRANT victim, neighbour TO shared; SELECT recur.grant_access('shared', 'consumer')",
    );
    let mut expected = Vec::new();
    for number in 0..6 {
        let role = ["victim", "neighbour"][number % 2];
        let mut owner = cluster.session_as(role, "app");
        let arguments = format!("run_at => now() - interval '{} hours'", 9 - number);
        expected.push(enqueue(&mut owner, &arguments));
    }
    let mut neighbour = cluster.session_as("neighbour", "app");
    expected.insert(0, enqueue(&mut neighbour, "priority => 1"));
    for role in ["shared", "postgres"] {
        for filter in [
            "",
            ", providers => '{test}'",
            ", providers => '{test,other}'",
        ] {
            for limit in [1, 2, 4, 10] {
                let mut consumer = cluster.session_as(role, "app");
                consumer.batch("BEGIN");
                let first = &expected[..expected.len().min(limit)];
                let filter = format!("{limit}{filter}");
                assert_eq!(claimed(&mut consumer, &filter), first, "{role}: {filter}");
                consumer.batch("ROLLBACK");
            }
        }
    }
    // What other consumers hold is passed over, and no more than that.
    let mut left = expected;
    let mut consumers = Vec::new();
    for (role, limit) in [("shared", 2), ("postgres", 3), ("shared", 10)] {
        let mut consumer = cluster.session_as(role, "app");
        consumer.batch("BEGIN");
        let ids = claimed(&mut consumer, &limit.to_string());
        assert_eq!(ids.len(), limit.min(left.len()), "{role}");
        assert!(ids.iter().all(|id| left.contains(id)), "{role}");
        left.retain(|id| !ids.contains(id));
        consumers.push(consumer);
    }
}

#[test]
fn a_claim_of_several_owners_takes_what_is_left_by_others() {
    let (cluster, mut admin) = with_two_owners();
    let mut victim = cluster.session_as("victim", "app");
    let mut neighbour = cluster.session_as("neighbour", "app");
    let oldest = enqueue(&mut victim, "run_at => now() - interval '1 hour'");
    let other = enqueue(&mut neighbour, "");
    for filter in ["1", "1, providers => '{test}'"] {
        let mut first = cluster.session_as("postgres", "app");
        first.batch("BEGIN");
        assert_eq!(claimed(&mut first, filter), [oldest]);
        // The oldest dispatch is still pending for everybody else, but locked.
        admin.batch("BEGIN");
        assert_eq!(claimed(&mut admin, filter), [other]);
        admin.batch("ROLLBACK");
        first.batch("ROLLBACK");
    }
}

#[test]
fn a_claim_of_several_owners_does_not_read_what_is_for_another_provider() {
    let (cluster, mut admin) = with_two_owners();
    let mut victim = cluster.session_as("victim", "app");
    let mut neighbour = cluster.session_as("neighbour", "app");
    for owner in [&mut victim, &mut neighbour] {
        let arguments = "provider => 'other', priority => 100, run_at => now() - interval '1 day'";
        enqueue_many(owner, OTHERS, arguments);
    }
    let mut consumer = cluster.session("app");
    for _ in 0..2 {
        let ids = [enqueue(&mut victim, ""), enqueue(&mut neighbour, "")];
        let before = entries(&mut consumer, &mut admin);
        assert_eq!(claimed(&mut consumer, "2, providers => '{test}'"), ids);
        let read = entries(&mut consumer, &mut admin) - before;
        assert!(read < 50, "{read} entries");
    }
}

/// The only owner of a database may get company while a session is connected.
#[test]
fn an_admin_sees_an_owner_that_is_new() {
    let (cluster, mut admin) = with_two_owners();
    let mut victim = cluster.session_as("victim", "app");
    let first = enqueue(&mut victim, "");
    assert_eq!(claimed(&mut admin, "10, providers => '{test}'"), [first]);
    let mut neighbour = cluster.session_as("neighbour", "app");
    let second = enqueue(&mut neighbour, "");
    assert_eq!(claimed(&mut admin, "10, providers => '{test}'"), [second]);
}
