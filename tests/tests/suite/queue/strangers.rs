//! Sessions that have nothing to do with a claim or an enqueue hold up neither.

use pg_recur_tests::queue::{claimed, enqueue, enqueue_many, let_lease_run_out};
use pg_recur_tests::{Cluster, Session};
use std::collections::BTreeSet;

const GROUPS: i32 = 200;

/// A server with two owners, and a role that may do nothing but connect.
fn with_owners() -> (Cluster, Session) {
    let cluster = Cluster::preloaded("recur.enabled = off");
    let mut admin = cluster.database("app");
    for role in ["victim", "neighbour"] {
        admin.batch(&format!(
            "CREATE ROLE {role} LOGIN; SELECT recur.grant_access('{role}', 'author');
             SELECT recur.grant_access('{role}', 'consumer')"
        ));
    }
    admin.batch("CREATE ROLE stranger LOGIN");
    (cluster, admin)
}

/// A session that waits for no lock for long.
fn impatient(cluster: &Cluster, role: &str) -> Session {
    let mut session = cluster.session_as(role, "app");
    session.batch("SET lock_timeout = '5s'");
    session
}

/// The advisory locks that the session holds: both halves of their keys.
fn locks(session: &mut Session) -> BTreeSet<(u32, u32)> {
    let rows = session.rows(
        "SELECT classid, objid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
        &[],
    );
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Begins a transaction that claims from many lock groups and enqueues with many keys; the locks of that.
fn claim_and_enqueue(session: &mut Session) -> BTreeSet<(u32, u32)> {
    enqueue_many(session, GROUPS, "lock_group => 'g' || n");
    session.batch("BEGIN");
    let number = claimed(session, "1000").len();
    assert_eq!(number, GROUPS as usize, "one of each group");
    enqueue_many(session, GROUPS, "dedup_key => 'k' || n");
    locks(session)
}

#[test]
fn plain_advisory_locks_hold_up_nothing() {
    let (cluster, mut admin) = with_owners();
    let mut victim = impatient(&cluster, "victim");
    let locks = claim_and_enqueue(&mut victim);
    assert!(locks.len() > GROUPS as usize / 2, "{}", locks.len());
    victim.batch("ROLLBACK");
    // Each of these, in every form that a session can take.
    let mut stranger = impatient(&cluster, "stranger");
    for (high, low) in &locks {
        let whole = i64::from(*high) << 32 | i64::from(*low);
        stranger.batch(&format!(
            "SELECT pg_advisory_lock({}, {}), pg_advisory_lock({whole})",
            *high as i32, *low as i32
        ));
    }
    assert_eq!(claimed(&mut victim, "1000").len(), GROUPS as usize);
    enqueue_many(&mut victim, GROUPS, "dedup_key => 'k' || n");
    enqueue_many(&mut victim, GROUPS, "dedup_key => 'k' || n");
    assert_eq!(
        victim.count("recur.dispatches WHERE status = 'pending'"),
        i64::from(GROUPS)
    );
    // Retention, too, waits for no lock of that kind.
    victim
        .batch("SELECT recur.complete(id, attempt) FROM recur.dispatches WHERE status = 'running'");
    admin.batch("SET lock_timeout = '5s'");
    let removed: i64 = admin.value("SELECT recur.purge('0')", &[]);
    assert_eq!(removed, i64::from(GROUPS));
    let opened: bool = admin.value(
        "SELECT recur_internal.open_next_partition('1 minute', now() + interval '1 hour')",
        &[],
    );
    assert!(opened);
}

#[test]
fn an_open_transaction_of_another_owner_holds_up_nothing() {
    let (cluster, _admin) = with_owners();
    let mut neighbour = impatient(&cluster, "neighbour");
    // More groups than there are locks for the groups of an owner.
    enqueue_many(&mut neighbour, 5_000, "lock_group => 'other ' || n");
    neighbour.batch("BEGIN; SELECT FROM recur.claim(10000)");
    enqueue_many(&mut neighbour, GROUPS, "lock_group => 'g' || n");
    neighbour.batch("SELECT FROM recur.claim(10000)");
    enqueue_many(&mut neighbour, GROUPS, "dedup_key => 'k' || n");
    let of_neighbour = locks(&mut neighbour);

    // The same names, and no lock in common.
    let mut victim = impatient(&cluster, "victim");
    let of_victim = claim_and_enqueue(&mut victim);
    assert_eq!(of_victim.intersection(&of_neighbour).count(), 0);
    victim.batch("COMMIT");
    neighbour.batch("COMMIT");
    let running: i64 = victim.count("recur.dispatches WHERE status = 'running'");
    assert_eq!(running, i64::from(GROUPS));
}

/// What is claimed in a transaction that rolls back has never run.
#[test]
fn a_claim_that_is_rolled_back_leaves_its_group_free() {
    let (cluster, mut admin) = with_owners();
    let mut first = impatient(&cluster, "victim");
    let mut second = impatient(&cluster, "victim");
    let id = enqueue(&mut first, "lock_group => 'g'");
    first.batch("BEGIN");
    assert_eq!(claimed(&mut first, "1"), [id]);
    // Not yet: the first session may commit.
    assert_eq!(claimed(&mut second, "1").len(), 0);
    first.batch("ROLLBACK");
    assert_eq!(claimed(&mut second, "1"), [id]);
    // A consumer that has disappeared keeps its group until its lease has expired, and no longer.
    let next = enqueue(&mut first, "lock_group => 'g'");
    assert_eq!(claimed(&mut first, "1").len(), 0);
    let_lease_run_out(&mut admin, id);
    admin.batch("SELECT recur_internal.expire_leases()");
    assert_eq!(claimed(&mut first, "1"), [next]);
    assert_eq!(claimed(&mut second, "1").len(), 0);
    first.execute("SELECT recur.complete($1, 1)", &[&next]);
    assert_eq!(claimed(&mut second, "1"), [id]);
}

/// An admin's claim meets the groups of many owners, and has room for all of their locks.
#[test]
fn a_claim_takes_a_bounded_number_of_locks() {
    let (cluster, mut admin) = with_owners();
    for role in ["victim", "neighbour"] {
        let mut owner = impatient(&cluster, role);
        enqueue_many(&mut owner, 4_000, "lock_group => 'g' || n");
    }
    admin.batch("BEGIN");
    let first = claimed(&mut admin, "10000").len();
    let number = locks(&mut admin).len();
    assert!(number <= 1_024, "{number} locks");
    admin.batch("COMMIT");
    // What it left is for later claims.
    let mut all = first;
    while all < 8_000 {
        let more = claimed(&mut admin, "10000").len();
        assert!(more > 0, "{all}");
        all += more;
    }
}
