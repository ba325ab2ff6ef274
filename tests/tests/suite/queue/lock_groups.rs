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

/// While somebody holds a snapshot, each group that has run leaves an entry in the index of those that run.
#[test]
fn groups_that_ran_before_are_not_waded_through() {
    const DEAD: i64 = 3_000;
    let cluster = Cluster::quiet();
    let mut session = cluster.database("dead_groups");
    let mut holder = cluster.session("dead_groups");
    queue_groups(&mut session, "before", DEAD as i32);
    queue_groups(&mut session, "now", 20);
    holder.batch("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM recur.live_dispatches");
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
fn groups_that_run_are_passed_over() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("running_groups");
    for _ in 0..3 {
        queue_groups(&mut session, "g", 50);
    }
    assert_eq!(claim(&mut session, 1_000), 50);
    queue_groups(&mut session, "free", 5);
    assert_eq!(claim(&mut session, 1_000), 5);
    assert_eq!(claim(&mut session, 1_000), 0);
    session.batch(
        "SELECT recur.complete(id, attempt) FROM recur.live_dispatches WHERE status = 'running'",
    );
    assert_eq!(claim(&mut session, 1_000), 50);
}
