//! More databases than the server has slots for background workers.

use pg_recur_tests::{Cluster, Session, eventually, eventually_some};
use std::collections::HashSet;

/// The launcher takes one of the slots.
fn with_slots(slots: usize) -> Cluster {
    Cluster::preloaded(&format!(
        "max_logical_replication_workers = 0\nmax_worker_processes = {}\nrecur.max_workers = 100",
        slots + 1
    ))
}

/// Databases d1, d2 and so on with the extension, armed copies of the first one, in which `sql` has run before.
fn databases(cluster: &Cluster, count: usize, sql: &str) -> Vec<Session> {
    let mut first = cluster.database("d1");
    first.batch(sql);
    drop(first);
    let mut admin = cluster.session("postgres");
    for number in 2..=count {
        admin.batch(&format!("CREATE DATABASE d{number} TEMPLATE d1"));
    }
    (1..=count)
        .map(|number| {
            let mut session = cluster.session(&format!("d{number}"));
            session.batch("SELECT recur.arm()");
            session
        })
        .collect()
}

/// (database, kind) of all that recur.workers shows.
fn workers(session: &mut Session) -> Vec<(String, String)> {
    let rows = session.rows("SELECT database::text, kind FROM recur.workers", &[]);
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn count(workers: &[(String, String)], kind: &str) -> usize {
    workers.iter().filter(|worker| worker.1 == kind).count()
}

/// A database that has no process, once the launcher has looked into all of them.
fn without_process(session: &mut Session, databases: usize, slots: usize) -> String {
    eventually_some("databases without a process", || {
        let workers = workers(session);
        let settled = count(&workers, "none") == databases - slots;
        settled.then(|| {
            let none = workers.into_iter().find(|worker| worker.1 == "none");
            none.expect("one without a process").0
        })
    })
}

#[test]
fn twelve_databases_on_four_slots_all_fire() {
    const DATABASES: usize = 12;
    let cluster = with_slots(4);
    let every_second = "SELECT recur.create('tick', '* * * * * *', 'p', 't')";
    let mut sessions = databases(&cluster, DATABASES, every_second);
    let runs = "SELECT run_count FROM recur.recurring_actions";
    for session in &mut sessions {
        let before: i64 = session.value(runs, &[]);
        eventually("it fires", || session.value::<i64>(runs, &[]) > before);
    }
    let session = &mut sessions[0];
    let seen = workers(session);
    let databases: HashSet<&String> = seen.iter().map(|worker| &worker.0).collect();
    assert!(databases.len() <= DATABASES, "{seen:?}");
    let processes = seen.len() - count(&seen, "none");
    assert!((3..=4).contains(&processes), "{seen:?}");
    assert!(count(&seen, "dispatcher") <= 3, "{seen:?}");
    eventually("one roams", || count(&workers(session), "roaming") == 1);
    let finding = session.rows("SELECT severity, finding, remedy FROM recur.doctor()", &[]);
    let found = |column: usize, text: &str| {
        let mut texts = finding.iter().map(|row| row.get::<_, String>(column));
        texts.any(|one| one.starts_with(text))
    };
    assert!(found(1, "12 databases share 4 worker processes"));
    // One of them is the launcher's, 13 are for dispatchers and visits; others were left 4.
    assert!(found(
        2,
        "Set max_worker_processes = 17 and restart the server, and raise"
    ));
    let warning = "WARNING:  pg_recur launcher: databases=";
    assert!(cluster.log().contains(warning), "the log says so, too");

    // Each one can be dropped, wherever the workers are. What is left has processes of its own.
    drop(sessions);
    let mut admin = cluster.session("postgres");
    for number in 4..=DATABASES {
        admin.batch(&format!("DROP DATABASE d{number}"));
    }
    let mut session = cluster.session("d1");
    eventually("three databases have three dispatchers", || {
        let seen = workers(&mut session);
        seen.len() == 3 && count(&seen, "dispatcher") == 3
    });
    assert_eq!(session.count("recur.doctor()"), 0);
    assert!(
        cluster
            .log()
            .contains("LOG:  pg_recur launcher: each database has a process of its own again")
    );
}

/// PostgreSQL as it comes, with the default of 8 slots: others take their part of them, and none starves.
#[test]
fn twenty_databases_on_the_default_slots_all_fire() {
    const DATABASES: usize = 20;
    let cluster = Cluster::preloaded(
        "max_worker_processes = 8\nrecur.check_interval = '5s'\nmax_connections = 60",
    );
    let every_second = "SELECT recur.create('tick', '* * * * * *', 'p', 't')";
    let mut sessions = databases(&cluster, DATABASES, every_second);
    let runs = "SELECT run_count FROM recur.recurring_actions";
    for _ in 0..3 {
        let before: Vec<i64> = sessions
            .iter_mut()
            .map(|session| session.value(runs, &[]))
            .collect();
        for (session, before) in sessions.iter_mut().zip(before) {
            eventually("it fires", || session.value::<i64>(runs, &[]) > before);
        }
    }
    let seen = workers(&mut sessions[0]);
    assert!(count(&seen, "dispatcher") <= 3, "{seen:?}");
    assert_eq!(
        seen.iter()
            .map(|worker| &worker.0)
            .collect::<HashSet<_>>()
            .len(),
        DATABASES,
        "each has a process or is shown without one: {seen:?}"
    );
    let finding = "SELECT remedy FROM recur.doctor() WHERE finding LIKE '20 databases share 4 worker processes%'";
    let remedy: String = sessions[DATABASES - 1].value(finding, &[]);
    assert!(
        remedy.starts_with("Set max_worker_processes = 25 and restart the server."),
        "{remedy}"
    );
    let log = cluster.log();
    assert!(
        log.contains("WARNING:  pg_recur launcher: databases="),
        "the log says so, too"
    );
    assert!(
        !log.contains("each database has a process of its own again"),
        "not even while the first one is copied"
    );
}

/// The safety net is an hour wide: no worker comes by unless a commit calls.
#[test]
fn a_commit_in_a_database_without_a_process_calls_for_a_visit() {
    let cluster = with_slots(2);
    let mut sessions = databases(
        &cluster,
        4,
        "SELECT recur.create('rare', '@yearly', 'p', 't')",
    );
    for _ in 0..3 {
        let name = without_process(&mut sessions[0], 4, 2);
        let mut session = cluster.session(&name);
        session.batch("LISTEN recur; SELECT recur.update(recur.id_of('rare'), '{\"schedule\": \"* * * * * *\"}')");
        assert_eq!(session.notification()["provider"], "p");
        session.batch("SELECT recur.update(recur.id_of('rare'), '{\"schedule\": \"@yearly\"}')");
        session.batch("UNLISTEN *");
    }
    // The same for a dispatch that becomes available later.
    let name = without_process(&mut sessions[0], 4, 2);
    let mut session = cluster.session(&name);
    session.batch("LISTEN recur; SELECT recur.enqueue('later', 't', run_at => clock_timestamp() + interval '1 s')");
    assert_eq!(session.notification()["provider"], "later");
    // And for the extension's creation in a new database.
    let mut late = cluster.database("late");
    late.batch("LISTEN recur; SELECT recur.create('tick', '* * * * * *', 'new', 't')");
    assert_eq!(late.notification()["provider"], "new");
}

/// A dispatcher that starts announces everything that is available. One that comes for a visit goes on where the last
/// one has left off.
#[test]
fn a_visit_announces_nothing_twice() {
    let cluster = with_slots(1);
    let mut sessions = databases(
        &cluster,
        3,
        "SELECT recur.create('rare', '@yearly', 'p', 't')",
    );
    let [first, second, _] = &mut sessions[..] else {
        unreachable!()
    };
    without_process(first, 3, 1);
    first.batch("LISTEN recur; SELECT recur.enqueue('early', 't', run_at => clock_timestamp() + interval '1 s')");
    assert_eq!(first.notification()["provider"], "early");
    for visit in 0..2 {
        second.batch("LISTEN recur; SELECT recur.enqueue('other', 't', run_at => clock_timestamp() + interval '1 s')");
        assert_eq!(second.notification()["provider"], "other");
        let provider = format!("again {visit}");
        first.execute(
            "SELECT recur.enqueue($1, 't', run_at => clock_timestamp() + interval '1 second')",
            &[&provider],
        );
        assert_eq!(first.notification()["provider"], provider);
    }
}

/// Holds a slot until the session ends, as a parallel query does.
fn hold_slot(cluster: &Cluster) -> (std::thread::JoinHandle<()>, i32) {
    let mut session = cluster.session("postgres");
    let pid = session.pid();
    session.batch(
        "SELECT set_config(name, 'on', false) FROM pg_settings
          WHERE name IN ('force_parallel_mode', 'debug_parallel_query')",
    );
    let holder = std::thread::spawn(move || {
        // Ends with the session.
        let _ = session.0.batch_execute("SELECT pg_sleep(600)");
    });
    (holder, pid)
}

#[test]
fn slots_that_others_take_are_used_again_when_they_are_free() {
    let cluster = with_slots(3);
    let (holder, pid) = hold_slot(&cluster);
    let mut admin = cluster.session("postgres");
    eventually("a parallel worker has a slot", || {
        admin.count("pg_stat_activity WHERE backend_type = 'parallel worker'") == 1
    });
    let every_second = "SELECT recur.create('tick', '* * * * * *', 'p', 't')";
    let mut sessions = databases(&cluster, 3, every_second);
    for session in &mut sessions {
        eventually("it fires", || session.count("recur.dispatches") > 3);
    }
    assert!(count(&workers(&mut sessions[0]), "dispatcher") < 3);
    admin.execute("SELECT pg_terminate_backend($1)", &[&pid]);
    holder.join().expect("the session ends");
    eventually("each has its own dispatcher", || {
        count(&workers(&mut sessions[0]), "dispatcher") == 3
    });
}

#[test]
fn the_number_of_workers_takes_effect_on_reload() {
    let cluster = Cluster::preloaded("recur.max_workers = 2");
    let mut sessions = databases(
        &cluster,
        4,
        "SELECT recur.create('tick', '* * * * * *', 'p', 't')",
    );
    for session in &mut sessions {
        eventually("it fires", || session.count("recur.dispatches") > 3);
    }
    let session = &mut sessions[0];
    let processes =
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pg_recur dispatcher'";
    assert!(session.value::<i64>(processes, &[]) <= 2);
    cluster.configure("recur.max_workers = 4");
    cluster.reload();
    eventually("all have their own", || {
        count(&workers(session), "dispatcher") == 4
    });
    cluster.configure("recur.max_workers = 1");
    cluster.reload();
    eventually("all share one", || {
        let seen = workers(session);
        count(&seen, "dispatcher") == 0 && session.value::<i64>(processes, &[]) <= 1
    });
    for session in &mut sessions {
        let before = session.count("recur.dispatches");
        eventually("it goes on", || session.count("recur.dispatches") > before);
    }
}

/// A launcher that starts anew knows which worker roams, and where there is none.
#[test]
fn a_new_launcher_goes_on_with_the_visits() {
    let cluster = with_slots(2);
    let mut sessions = databases(
        &cluster,
        4,
        "SELECT recur.create('tick', '* * * * * *', 'p', 't')",
    );
    for session in &mut sessions {
        eventually("it fires", || session.count("recur.dispatches") > 0);
    }
    let launcher = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_recur launcher'";
    let pid: i32 = sessions[0].value(launcher, &[]);
    sessions[0].execute("SELECT pg_terminate_backend($1)", &[&pid]);
    for session in &mut sessions {
        let before = session.count("recur.dispatches");
        eventually("it goes on", || {
            session.count("recur.dispatches") > before + 2
        });
    }
}
