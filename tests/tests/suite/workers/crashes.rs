//! What survives what: kill -9, immediate shutdown, promotion of a standby.

use chrono::{DateTime, Utc};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pg_recur_tests::workers::{dispatcher, session_after_kill};
use pg_recur_tests::{Cluster, Session, Shutdown, eventually, eventually_some};
use std::collections::HashSet;

fn occurrences(session: &mut Session) -> Vec<DateTime<Utc>> {
    session.column(
        "SELECT scheduled_at FROM recur.dispatches ORDER BY scheduled_at",
        &[],
    )
}

/// None is doubled, and the action's own counts agree.
fn check(session: &mut Session) {
    let all = occurrences(session);
    let distinct: HashSet<_> = all.iter().collect();
    assert_eq!(
        distinct.len(),
        all.len(),
        "an occurrence was dispatched twice"
    );
    let agrees: bool = session.value(
        "SELECT a.run_count = count(d.id) AND a.last_run_at = max(d.scheduled_at)
            AND a.next_run_at > max(d.scheduled_at)
           FROM recur.recurring_actions a JOIN recur.dispatches d ON d.action_id = a.id
          GROUP BY a.run_count, a.last_run_at, a.next_run_at",
        &[],
    );
    assert!(
        agrees,
        "the advance and the dispatches of an action must commit together"
    );
}

#[test]
fn a_killed_dispatcher_costs_nothing_but_time() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    session.execute("SELECT recur.create('tick', '* * * * * *', 'p', 'a')", &[]);
    for _ in 0..3 {
        let seen = occurrences(&mut session).len();
        eventually("it fires", || occurrences(&mut session).len() > seen);
        let pid = dispatcher(&mut session, "app");
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        session = session_after_kill(&cluster, "app", pid);
        let seen = occurrences(&mut session).len();
        eventually("it goes on", || occurrences(&mut session).len() > seen);
        check(&mut session);
    }
}

#[test]
fn a_server_that_dies_goes_on_where_it_was() {
    let mut cluster = Cluster::preloaded("fsync = on");
    let mut session = cluster.database("app");
    session.execute("SELECT recur.create('tick', '* * * * * *', 'p', 'a')", &[]);
    for shutdown in [Shutdown::Immediate, Shutdown::Kill, Shutdown::Fast] {
        let seen = occurrences(&mut session).len();
        eventually("it fires", || occurrences(&mut session).len() > seen);
        let before: HashSet<_> = occurrences(&mut session).into_iter().collect();
        drop(session);
        cluster.restart(shutdown);
        session = cluster.session("app");
        let after: HashSet<_> = occurrences(&mut session).into_iter().collect();
        assert!(
            before.is_subset(&after),
            "what a client has seen is there after {shutdown:?}"
        );
        eventually("it goes on", || {
            occurrences(&mut session).len() > after.len()
        });
        check(&mut session);
    }
}

#[test]
fn a_standby_is_silent_until_it_is_promoted() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    session.execute("SELECT recur.create('tick', '* * * * * *', 'p', 'a')", &[]);
    eventually("it fires", || !occurrences(&mut session).is_empty());

    let standby = cluster.standby();
    let mut replica = eventually_some("the standby has the database", || {
        standby.try_connect("app")
    });
    eventually("it is replicated", || !occurrences(&mut replica).is_empty());
    assert_eq!(
        replica.count("pg_stat_activity WHERE backend_type LIKE 'pg_recur%'"),
        0,
        "nothing runs during recovery"
    );

    drop(session);
    drop(cluster);
    standby.promote();
    let seen = occurrences(&mut replica).len();
    eventually("the standby takes over", || {
        occurrences(&mut replica).len() > seen
    });
    check(&mut replica);
}
