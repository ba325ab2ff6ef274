//! After an outage: everything is due at once, and is worked off in batches, in little memory, beside other work.

use pg_recur_tests::timers::set_due;
use pg_recur_tests::workers::dispatcher;
use pg_recur_tests::{Cluster, Session, Shutdown, eventually};
use std::fs;
use std::time::{Duration, Instant};

/// How many are due at once. The long form has a million.
fn backlog() -> i64 {
    std::env::var("PG_RECUR_BACKLOG")
        .map(|text| text.parse().expect("PG_RECUR_BACKLOG is a number"))
        .unwrap_or(200_000)
}

/// Copies of one action, written past the functions, which would take far longer. Nothing is due yet.
fn fill(session: &mut Session, actions: i64) {
    session.batch(
        "SELECT recur.create('a1', '@yearly', 'p', 't', starts_at => '2026-01-01Z');
         SET session_replication_role = replica",
    );
    session.execute(
        "INSERT INTO recur_internal.definitions
         SELECT copy.* FROM recur_internal.definitions AS d, generate_series(2, $1::bigint) AS n,
                jsonb_populate_record(d, jsonb_build_object('id', gen_random_uuid(), 'name', 'a' || n)) AS copy",
        &[&actions],
    );
    for table in ["timers", "progress"] {
        session.batch(&format!(
            "INSERT INTO recur_internal.{table}
             SELECT copy.* FROM recur_internal.{table} AS t, recur_internal.definitions AS d,
                    jsonb_populate_record(t, jsonb_build_object('action_id', d.id)) AS copy
              WHERE d.id <> t.action_id"
        ));
    }
    session.batch("SET session_replication_role = origin");
}

/// All at once, since an hour ago.
fn make_due(session: &mut Session) {
    set_due(session, "now() - interval '1 hour'", "");
}

/// What the process has for itself, in kilobytes. Not its "private" pages: a shared buffer that no other process has
/// touched yet counts as one.
fn own_memory(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("status");
    let own = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .and_then(|rest| rest.split_whitespace().next());
    own.expect("RssAnon").parse().expect("a number")
}

fn dispatched(session: &mut Session) -> i64 {
    session.value("SELECT coalesce(max(dispatched), 0) FROM recur.stats", &[])
}

#[test]
fn a_large_backlog_is_drained_in_little_memory_beside_other_work() {
    let cluster = Cluster::preloaded(
        "max_wal_size = '4GB'\nstats_fetch_consistency = none\nshared_buffers = '256MB'",
    );
    let mut session = cluster.database("app");
    let actions = backlog();
    fill(&mut session, actions);
    let pid = dispatcher(&mut session, "app");
    make_due(&mut session);
    let mut other = cluster.session("app");
    // From when it has warmed up: plans, caches, the first batches.
    eventually("it is under way", || {
        dispatched(&mut session) >= actions / 20
    });
    let early = own_memory(pid);
    let mut most = early;
    let mut beside = 0;
    let started = Instant::now();
    while dispatched(&mut session) < actions {
        most = most.max(own_memory(pid));
        // Others define, trigger, claim and report meanwhile.
        other.batch(
            "SELECT recur.enqueue('other', 't');
             SELECT recur.complete(id, attempt) FROM recur.claim(1, providers => '{other}')",
        );
        beside += 1;
        assert!(
            started.elapsed() < Duration::from_secs(600),
            "does not come to an end"
        );
    }
    assert!(beside > 10, "other work was done {beside} times only");
    assert!(
        most < early + 4 * 1024,
        "the dispatcher had {early} kB when it had done a twentieth, and {most} kB at the most"
    );
    assert_eq!(dispatcher(&mut session, "app"), pid, "it is still the same");
    let row = &session.rows(
        "SELECT (SELECT count(*) FROM recur_internal.live_dispatches WHERE provider = 'p'),
                (SELECT count(*) FROM recur_internal.timers WHERE run_count = 1)",
        &[],
    )[0];
    assert_eq!(
        (row.get::<_, i64>(0), row.get::<_, i64>(1)),
        (actions, actions)
    );
}

#[test]
fn a_shutdown_does_not_wait_for_the_end_of_a_drain() {
    let mut cluster = Cluster::preloaded("recur.batch_size = 100\nstats_fetch_consistency = none");
    let mut session = cluster.database("app");
    fill(&mut session, 50_000);
    make_due(&mut session);
    eventually("it is under way", || dispatched(&mut session) > 0);
    drop(session);
    cluster.stop(Shutdown::Fast);
    cluster.configure("recur.enabled = off");
    cluster.launch();
    let mut session = cluster.session("app");
    let row = &session.rows(
        "SELECT count(*), (SELECT count(*) FROM recur_internal.timers WHERE run_count = 1)
           FROM recur_internal.live_dispatches",
        &[],
    )[0];
    let (rows, advanced): (i64, i64) = (row.get(0), row.get(1));
    assert_eq!(rows, advanced, "each dispatch with its advance");
    assert!(rows < 50_000, "the server stopped only when all was done");
    // And goes on where it was.
    cluster.configure("recur.enabled = on");
    cluster.reload();
    eventually("the rest follows", || {
        session.count("recur_internal.live_dispatches") == 50_000
    });
}
