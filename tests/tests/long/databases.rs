//! Twenty databases on the slots that a server has by default.

use pg_recur_tests::{Cluster, Session, books, eventually};
use std::collections::HashSet;

#[test]
fn twenty_databases_on_eight_slots_fire_in_time() {
    const DATABASES: usize = 20;
    // Four of the slots are left to others.
    let cluster = Cluster::preloaded("max_worker_processes = 8\nrecur.check_interval = '5s'");
    let mut first = cluster.database("d1");
    first.batch(
        "SELECT count(recur.create('a' || n, '*/5 * * * * *', 'p', 't', misfire => 'all'))
           FROM generate_series(1, 5) AS n",
    );
    drop(first);
    let mut admin = cluster.session("postgres");
    for number in 2..=DATABASES {
        admin.batch(&format!("CREATE DATABASE d{number} TEMPLATE d1"));
    }
    let mut sessions: Vec<Session> = (1..=DATABASES)
        .map(|number| cluster.session(&format!("d{number}")))
        .collect();
    // A copy holds its fire until it is armed.
    for session in &mut sessions[1..] {
        session.batch("SELECT recur.arm()");
    }
    let runs = "SELECT sum(run_count)::bigint FROM recur.recurring_actions";
    let before: Vec<i64> = sessions
        .iter_mut()
        .map(|session| session.value(runs, &[]))
        .collect();
    let mut roamed = HashSet::new();
    for (session, before) in sessions.iter_mut().zip(before) {
        eventually("it goes on and on", || {
            let roaming = "SELECT database::text FROM recur.workers WHERE kind = 'roaming'";
            roamed.extend(session.texts(roaming, &[]));
            session.value::<i64>(runs, &[]) > before + 25
        });
    }
    assert!(roamed.len() > DATABASES / 2, "visited: {roamed:?}");
    // The workers find the extension in one database after the other: the log corrects what it said of the first ones.
    let remedy: String = sessions[0].value(
        "SELECT substring(remedy FROM 'max_worker_processes = \\d+') FROM recur.doctor()
          WHERE finding LIKE '% share %'",
        &[],
    );
    eventually("the log says how many slots are enough", || {
        cluster
            .log()
            .contains(&format!("{remedy} is enough for all"))
    });
    for session in &mut sessions {
        let latest: f64 = session.value("SELECT lateness_max_ms FROM recur.stats", &[]);
        assert!(latest < 60_000.0, "{latest} ms late");
        books::check(session);
    }
}
