//! Many dispatchers, many sessions, many tenants: each occurrence once, and nobody starves.

use pg_recur_tests::{Cluster, Session, eventually};

const BATCH: i64 = 20;
const BACKLOG: i64 = 4_000;

/// A backlog of one tenant that became due before anything of the others did, seen all at once.
fn pile_up(session: &mut Session, heavy: &str, others: &[&str]) {
    session.execute(
        "SELECT count(recur.create('a' || n, '@yearly', 'p', 't', tenant => $1))
           FROM generate_series(1, $2::bigint) AS n",
        &[&heavy, &BACKLOG],
    );
    for tenant in others {
        session.execute(
            "SELECT recur.create('mine', '@yearly', 'p', 't', tenant => $1)",
            &[tenant],
        );
    }
    session.execute(
        "UPDATE recur.timers SET next_run_at = now() - CASE tenant WHEN $1 THEN interval '1 hour'
           ELSE interval '1 minute' END",
        &[&heavy],
    );
}

/// How many batches came before this tenant's dispatch. A batch writes under one transaction id.
fn batches_before(session: &mut Session, tenant: &str) -> i64 {
    session.value(
        "SELECT count(DISTINCT l.xmin::text) FROM recur.live_dispatches AS l
          WHERE l.created_at < (SELECT min(o.created_at) FROM recur.live_dispatches AS o WHERE o.tenant = $1)",
        &[&tenant],
    )
}

#[test]
fn a_heavy_tenant_delays_another_by_a_batch_or_two() {
    let cluster = Cluster::preloaded(&format!("recur.batch_size = {BATCH}\nautovacuum = off"));
    for (database, heavy, others) in [
        ("tenants", "heavy", vec!["light", "default", "zzz"]),
        ("untenanted", "default", vec!["light", "zzz"]),
    ] {
        let mut session = cluster.database(database);
        pile_up(&mut session, heavy, &others);
        let all = BACKLOG + others.len() as i64;
        eventually("all are dispatched", || {
            session.count("recur.live_dispatches") == all
        });
        let batches: i64 = session.value(
            "SELECT count(DISTINCT xmin::text) FROM recur.live_dispatches",
            &[],
        );
        assert!(batches >= BACKLOG / BATCH, "{batches} batches");
        for tenant in others {
            let before = batches_before(&mut session, tenant);
            assert!(
                before <= 3,
                "{tenant} had to wait for {before} of {batches} batches of {heavy}"
            );
        }
    }
}

/// More tenants than one turn looks at, all but a few of which have nothing to do.
#[test]
fn tenants_that_wait_for_nothing_keep_nobody_from_his_turn() {
    let cluster = Cluster::preloaded(&format!("recur.batch_size = {BATCH}\nautovacuum = off"));
    let mut session = cluster.database("app");
    let waiting = ["t0300", "t1100"];
    session.batch(
        "SELECT count(recur.create('idle', '@yearly', 'p', 't', tenant => 't' || to_char(n, 'FM0000')))
           FROM generate_series(1, 1200) AS n",
    );
    session.execute(
        "SELECT count(recur.create('a' || n, '@yearly', 'p', 't', tenant => 'a_heavy'))
           FROM generate_series(1, $1::bigint) AS n",
        &[&BACKLOG],
    );
    session.execute(
        "UPDATE recur.timers SET next_run_at = now() - CASE tenant WHEN 'a_heavy' THEN interval '1 hour'
           ELSE interval '1 minute' END
          WHERE tenant = 'a_heavy' OR tenant = ANY ($1)",
        &[&&waiting[..]],
    );
    eventually("all are dispatched", || {
        session.count("recur.live_dispatches") == BACKLOG + 2
    });
    for tenant in waiting {
        let before = batches_before(&mut session, tenant);
        // Three turns of the tenants are once around, and between two of them are two batches.
        assert!(before <= 10, "{tenant} had to wait for {before} batches");
    }
}

/// Not that anybody should set it so, but whoever's turn it is, nobody suffers for it.
#[test]
fn a_timer_that_is_due_without_a_next_run_spoils_no_turn() {
    let cluster = Cluster::preloaded("recur.batch_size = 2");
    // It is found in the tenants' turn, and in that of those without one: a backlog of others is older.
    for (database, heavy, odd) in [
        ("tenants", "default", "odd"),
        ("untenanted", "heavy", "default"),
    ] {
        let mut session = cluster.database(database);
        session.execute(
            "SELECT count(recur.create('a' || n, '@yearly', 'p', 't', tenant => CASE n WHEN 11 THEN $1 ELSE $2 END))
               FROM generate_series(1, 11) AS n",
            &[&odd, &heavy],
        );
        session.batch(&format!(
            "BEGIN;
             UPDATE recur.timers SET next_run_at = now() - CASE tenant WHEN '{odd}' THEN interval '1 minute'
               ELSE interval '1 hour' END;
             SET LOCAL session_replication_role = replica;
             UPDATE recur.timers SET next_run_at = NULL WHERE tenant = '{odd}';
             COMMIT",
        ));
        eventually("all are dispatched", || {
            session.count("recur.recurring_actions WHERE run_count = 1 AND next_run_at > now()")
                == 11
        });
        let failed: i64 = session.value(
            "SELECT failed_batches FROM recur.stats WHERE database = current_database()",
            &[],
        );
        assert_eq!(failed, 0, "{database}");
    }
}

#[test]
fn what_becomes_due_during_a_drain_is_not_behind_all_of_it() {
    let cluster = Cluster::preloaded(&format!(
        "recur.batch_size = {BATCH}\nautovacuum = off\ntrack_commit_timestamp = on"
    ));
    let mut session = cluster.database("app");
    pile_up(&mut session, "heavy", &[]);
    let mut other = cluster.session("app");
    other.batch("SELECT recur.create('mine', '@yearly', 'p', 't', tenant => 'light')");
    eventually("it is under way", || {
        other.count("recur.live_dispatches") > 0
    });
    let edit: String = other.value(
        "WITH due AS (UPDATE recur.timers SET next_run_at = clock_timestamp() WHERE tenant = 'light')
         SELECT pg_current_xact_id()::xid::text",
        &[],
    );
    eventually("all are dispatched", || {
        other.count("recur.live_dispatches") == BACKLOG + 1
    });
    // Batches that were committed after the edit was, and before the dispatch that it led to.
    let waited: i64 = other.value(
        "SELECT count(DISTINCT b.xmin::text) FROM recur.live_dispatches AS b, recur.live_dispatches AS mine
          WHERE mine.tenant = 'light' AND pg_xact_commit_timestamp(b.xmin) > pg_xact_commit_timestamp($1::text::xid)
            AND pg_xact_commit_timestamp(b.xmin) < pg_xact_commit_timestamp(mine.xmin)",
        &[&edit],
    );
    assert!(waited <= 4, "behind {waited} more batches");
}

#[test]
fn dispatchers_and_ticks_at_the_same_time_dispatch_each_occurrence_once() {
    let cluster = Cluster::preloaded("recur.dispatchers = 3\nrecur.batch_size = 25");
    let mut session = cluster.database("app");
    session.batch(
        "SELECT count(recur.create('a' || n, '* * * * * *', 'p', 't', misfire => 'all', max_runs => 20,
                                   tenant => 't' || n % 7))
           FROM generate_series(1, 300) AS n",
    );
    eventually("three dispatchers", || {
        session.count("recur.workers WHERE duty = 'dispatcher' AND database = 'app'") == 3
    });
    // Every round makes all of them due at once, with occurrences that are long over.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let mut session = cluster.session("app");
            scope.spawn(move || {
                loop {
                    session.batch("SELECT recur.tick()");
                    let left = session.count("recur.recurring_actions WHERE enabled");
                    if left == 0 {
                        break;
                    }
                }
            });
        }
        let mut session = cluster.session("app");
        scope.spawn(move || {
            for _ in 0..10 {
                session.batch(
                    "UPDATE recur.timers SET next_run_at = next_run_at - interval '30 seconds'
                      WHERE enabled",
                );
            }
        });
    });
    assert_eq!(session.count("recur.recurring_actions AS a
          WHERE a.ended_reason IS DISTINCT FROM 'exhausted' OR a.run_count <> 20
             OR (SELECT count(DISTINCT d.scheduled_at) FROM recur.dispatches AS d WHERE d.action_id = a.id) <> 20"), 0);
    assert_eq!(session.count("recur.dispatches"), 300 * 20);
    let deadlocks: i64 = session.value(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = 'app'",
        &[],
    );
    assert_eq!(deadlocks, 0);
    let errors: i64 = session.value("SELECT sum(error_count) FROM recur.recurring_actions", &[]);
    assert_eq!(errors, 0);
}
