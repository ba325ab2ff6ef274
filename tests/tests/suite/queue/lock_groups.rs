//! Lock groups in great numbers: what a claim takes and reads does not grow with them.

use pg_recur_tests::queue::{NONE, claimed, enqueue, enqueue_many};
use pg_recur_tests::{Cluster, Session, eventually};
use std::thread;
use uuid::Uuid;

/// Dispatches of this provider, each in a group of its own.
fn queue_groups(session: &mut Session, provider: &str, number: i32) {
    let arguments = format!("provider => '{provider}', lock_group => '{provider}' || n");
    enqueue_many(session, number, &arguments);
}

fn claim(session: &mut Session, number: i32) -> i64 {
    session.value("SELECT count(*) FROM recur.claim($1)", &[&number])
}

/// More groups than the lock table of the server has room for.
#[test]
fn a_claim_of_many_groups_needs_few_locks() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    queue_groups(&mut session, "many", 16_000);
    session.batch("BEGIN");
    assert_eq!(claim(&mut session, 16_000), 16_000);
    let locks = session.count("pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()");
    assert!(locks <= 1_024, "{locks}");
    // Groups that share their locks with those are left to a later claim, which does not wait.
    let mut other = cluster.session("app");
    queue_groups(&mut other, "other", 1);
    assert_eq!(claim(&mut other, 10), 0);
    session.batch("COMMIT");
    assert_eq!(claim(&mut other, 10), 1);
}

/// While a session holds a snapshot, each group that has run leaves an entry in the index of those that run.
#[test]
fn a_claim_does_not_read_the_dead_entries_of_groups_that_ran_before() {
    const DEAD: i64 = 3_000;
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mut holder = cluster.session("app");
    queue_groups(&mut session, "before", DEAD as i32);
    queue_groups(&mut session, "now", 20);
    holder
        .batch("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM recur_internal.live_dispatches");
    session.batch("SELECT recur.complete(id, attempt) FROM recur.claim(10000, ARRAY['before'])");
    let claim = "claim(10, ARRAY['now'])";
    // What is prepared and looked up in the catalog once is not counted.
    assert_eq!(
        session
            .rows(&format!("SELECT FROM recur.{claim}"), &[])
            .len(),
        10
    );
    let plan: serde_json::Value = session.value(
        &format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT FROM recur.{claim}"),
        &[],
    );
    let plan = &plan[0]["Plan"];
    assert_eq!(plan["Actual Rows"].as_f64(), Some(10.0));
    let pages =
        plan["Shared Hit Blocks"].as_i64().unwrap() + plan["Shared Read Blocks"].as_i64().unwrap();
    assert!(pages < DEAD, "{pages} pages");
}

/// However many groups run, and whichever of them a claim meets first.
#[test]
fn a_claim_passes_over_groups_that_run() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for _ in 0..3 {
        queue_groups(&mut session, "g", 50);
    }
    assert_eq!(claim(&mut session, 1_000), 50);
    queue_groups(&mut session, "free", 5);
    assert_eq!(claim(&mut session, 1_000), 5);
    assert_eq!(claim(&mut session, 1_000), 0);
    session.batch(
        "SELECT recur.complete(id, attempt) FROM recur_internal.live_dispatches WHERE status = 'running'",
    );
    assert_eq!(claim(&mut session, 1_000), 50);
}

#[test]
fn one_dispatch_of_a_group_runs_at_a_time() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let first = enqueue(
        &mut session,
        "lock_group => 'g', run_at => now() - interval '3 hours'",
    );
    let second = enqueue(
        &mut session,
        "lock_group => 'g', run_at => now() - interval '2 hours'",
    );
    let third = enqueue(
        &mut session,
        "lock_group => 'g', run_at => now() - interval '1 hour'",
    );
    let free = enqueue(&mut session, "");
    let other = enqueue(&mut session, "lock_group => 'h'");
    // The batch is filled from behind the group.
    assert_eq!(claimed(&mut session, "3"), [first, free, other]);
    assert_eq!(claimed(&mut session, "3"), NONE);
    session.execute("SELECT recur.complete($1, 1)", &[&first]);
    assert_eq!(claimed(&mut session, "1"), [second]);
    // Within one transaction as well.
    session.batch("BEGIN");
    session.execute("SELECT recur.complete($1, 1)", &[&second]);
    assert_eq!(claimed(&mut session, "1"), [third]);
    // Nor may another session, before this transaction ends.
    let mut another = cluster.session("app");
    assert_eq!(claimed(&mut another, "5"), NONE);
    session.batch("ROLLBACK");
    assert_eq!(claimed(&mut another, "5"), NONE);
}

#[test]
fn the_next_of_a_group_runs_while_another_session_holds_the_first() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let first = enqueue(
        &mut session,
        "lock_group => 'g', run_at => now() - interval '2 s'",
    );
    let second = enqueue(
        &mut session,
        "lock_group => 'g', run_at => now() - interval '1 s'",
    );
    enqueue(&mut session, "lock_group => 'g'");
    let mut holder = cluster.session("app");
    holder.batch("BEGIN");
    holder.execute(
        "SELECT FROM recur_internal.live_dispatches WHERE id = $1 FOR UPDATE",
        &[&first],
    );
    assert_eq!(claimed(&mut session, "10"), [second]);
    holder.batch("COMMIT");
    assert_eq!(claimed(&mut session, "10"), NONE, "one runs");
    session.execute("SELECT recur.complete($1, 1)", &[&second]);
    assert_eq!(claimed(&mut session, "10"), [first]);
}

#[test]
fn concurrent_consumers_never_run_two_of_a_group() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    enqueue_many(&mut session, 400, "lock_group => 'g' || n % 5");
    // The unique index is the referee: a second one of a group is an error, and fails the test.
    let consumers: Vec<_> = (0..6)
        .map(|number| {
            let mut session = cluster.session("app");
            if number == 0 {
                session.batch("SET default_transaction_isolation = 'repeatable read'");
            }
            thread::spawn(move || {
                eventually("all are done", || {
                    match session
                        .0
                        .query("SELECT id, attempt FROM recur.claim(3)", &[])
                    {
                        Ok(rows) => {
                            for row in rows {
                                let (id, attempt): (Uuid, i32) = (row.get(0), row.get(1));
                                session.execute("SELECT recur.complete($1, $2)", &[&id, &attempt]);
                            }
                        }
                        // What an old snapshot can't see is for the client to try again.
                        Err(error) => {
                            assert_eq!(number, 0);
                            assert_eq!(pg_recur_tests::database_error(&error).0, "40001");
                        }
                    }
                    let left = session.count("recur_internal.live_dispatches");
                    left == 0
                });
            })
        })
        .collect();
    for consumer in consumers {
        consumer.join().unwrap();
    }
    assert_eq!(
        session.count("recur.dispatches WHERE status = 'completed' AND attempt = 1"),
        400
    );
}
