//! Lock groups in great numbers: what a claim takes and reads does not grow with them.

use pg_recur_tests::{Cluster, Session};

/// Dispatches of this provider, each in a group of its own.
fn queue_groups(session: &mut Session, provider: &str, number: i32) {
    session.execute(
        "INSERT INTO recur.live_dispatches (id, scheduled_at, trigger, provider, action_type, lock_group)
         SELECT recur._new_id(now()), now(), 'enqueue', $1, 'noop', $1 || n FROM generate_series(1, $2) AS n",
        &[&provider, &number],
    );
}

fn claim(session: &mut Session, number: i32) -> i64 {
    session.value("SELECT count(*) FROM recur.claim($1)", &[&number])
}

/// More groups than the lock table of the server has room for.
#[test]
fn a_claim_of_many_groups_needs_few_locks() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("many_groups");
    queue_groups(&mut session, "many", 16_000);
    session.batch("BEGIN");
    assert_eq!(claim(&mut session, 16_000), 16_000);
    let locks: i64 = session.value(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
        &[],
    );
    assert!(locks <= 1_024, "{locks}");
    // Groups that share their locks with those are left to a later claim, and nobody waits.
    let mut other = cluster.session("many_groups");
    queue_groups(&mut other, "other", 1);
    assert_eq!(claim(&mut other, 10), 0);
    session.batch("COMMIT");
    assert_eq!(claim(&mut other, 10), 1);
}
