//! Extensions, databases and settings that come and go while the server runs.

use chrono::{DateTime, Utc};
use pg_recur_tests::actions::{EVERY_SECOND, create, dispatch_count};
use pg_recur_tests::workers::{dispatcher, dispatchers, starts_to_fire};
use pg_recur_tests::{Cluster, Session, Shutdown, eventually, eventually_some};
use std::fs;

/// The workers remember where their indexes are. They act as the engine, whoever owns the tables.
#[test]
fn workers_find_indexes_that_were_rebuilt_and_tables_whose_owner_changed() {
    let cluster = Cluster::preloaded("recur.check_interval = '200ms'");
    let mut session = cluster.database("app");
    starts_to_fire(&mut session, "tick");
    session.batch("SELECT recur.pause(recur.id_of('tick')); CREATE ROLE keeper");
    let failures = || cluster.log().matches("failed").count();
    let before = failures();
    // This one makes a new index and drops the old one.
    for index in [
        "timers_due",
        "live_dispatches_later",
        "live_dispatches_leased",
    ] {
        session.batch(&format!(
            "REINDEX INDEX CONCURRENTLY recur_internal.{index}"
        ));
    }
    session.batch("SELECT recur.complete(id, attempt) FROM recur.claim(1000)");
    session.batch("SELECT recur.resume(recur.id_of('tick'))");
    // Dispatched, heard of, claimed, and taken back when the lease is over: each is found through one of them.
    session.batch("LISTEN recur");
    assert_eq!(session.notification()["provider"], "p");
    eventually("one can be claimed", || {
        session.count("recur.claim(1, lease => '10 ms')") == 1
    });
    eventually("the lease has expired", || {
        session.count("recur.dispatches WHERE error = 'lease expired'") == 1
    });
    // As whom they act is seen by a trigger of a superuser's.
    session.batch(
        "CREATE TABLE acted (who text); GRANT INSERT ON acted TO PUBLIC;
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
             $$BEGIN
                 INSERT INTO public.acted VALUES (current_user);
                 RETURN NULL;
             END$$;
         CREATE TRIGGER note AFTER INSERT ON recur_internal.live_dispatches FOR EACH STATEMENT EXECUTE FUNCTION note()",
    );
    let acts_as_engine = |session: &mut Session| {
        session.batch("TRUNCATE acted");
        eventually("a dispatch is written", || session.count("acted") > 0);
        let roles = session.texts("SELECT DISTINCT who FROM acted", &[]);
        assert_eq!(roles, ["recur_engine"]);
    };
    acts_as_engine(&mut session);
    session.batch(
        "DO $$DECLARE t regclass; BEGIN
             FOR t IN SELECT c.oid FROM pg_class AS c
              WHERE c.relnamespace IN ('recur'::regnamespace, 'recur_internal'::regnamespace)
                AND c.relkind IN ('r', 'p', 'v') LOOP
                 EXECUTE format('ALTER TABLE %s OWNER TO keeper', t);
             END LOOP;
         END$$;
         GRANT USAGE ON SCHEMA recur, recur_internal TO keeper",
    );
    acts_as_engine(&mut session);
    assert_eq!(failures(), before, "{}", cluster.log());
}

/// After an upgrade of the package, the library is newer than the objects in the database.
#[test]
fn workers_hold_until_the_extension_has_the_version_of_the_library() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    starts_to_fire(&mut session, "tick");
    let set_version = |session: &mut Session, version: &str| {
        session.execute(
            "UPDATE pg_extension SET extversion = $1 WHERE extname = 'pg_recur'",
            &[&version],
        );
    };
    let version: String = session.value(
        "SELECT extversion FROM pg_extension WHERE extname = 'pg_recur'",
        &[],
    );
    set_version(&mut session, "0.0.1");
    session.batch(
        "SELECT pg_terminate_backend(pid) FROM recur.workers WHERE database = current_database()",
    );
    let tries = || {
        cluster
            .log()
            .matches("until ALTER EXTENSION pg_recur UPDATE")
            .count()
    };
    eventually("a new worker sees the version", || tries() > 0);
    let held = session.count("recur.dispatches");
    eventually("an occurrence is overdue", || {
        session
            .count("recur_internal.timers WHERE due_at < clock_timestamp() - interval '1 second'")
            == 1
    });
    let before = tries();
    eventually("a worker has tried again since", || tries() > before);
    assert_eq!(session.count("recur.dispatches"), held);
    let row = &session.rows("SELECT severity, finding, remedy FROM recur.doctor()", &[])[0];
    assert_eq!(row.get::<_, String>(0), "error");
    assert_eq!(
        row.get::<_, String>(1),
        format!(
            "the extension in this database has version 0.0.1, and the library {version}: nothing fires by itself"
        )
    );
    assert!(
        row.get::<_, String>(2)
            .starts_with("ALTER EXTENSION pg_recur UPDATE")
    );
    set_version(&mut session, &version);
    eventually("it fires again", || {
        session.count("recur.dispatches") > held
    });
}

#[test]
fn settings_take_effect_on_reload() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    let mut observer = cluster.session("postgres");
    starts_to_fire(&mut session, "tick");

    cluster.configure("recur.notify_channel = 'elsewhere'");
    cluster.reload();
    let mut listener = cluster.session("app");
    listener.batch("LISTEN elsewhere");
    assert_eq!(listener.notification()["provider"], "p");

    cluster.configure("recur.enabled = off");
    cluster.reload();
    eventually("the dispatcher leaves", || {
        dispatchers(&mut observer, "app").is_empty()
    });
    cluster.configure("recur.enabled = on");
    cluster.reload();
    eventually("and comes back", || {
        !dispatchers(&mut observer, "app").is_empty()
    });

    cluster.configure("recur.databases = 'postgres, other'");
    cluster.reload();
    eventually("not this database", || {
        dispatchers(&mut observer, "app").is_empty()
    });
    cluster.configure("recur.databases = 'app'");
    cluster.reload();
    eventually("this one", || !dispatchers(&mut observer, "app").is_empty());
}

/// How often a process has gone to sleep: once for each time that it was woken.
fn wake_ups(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("status");
    let switches = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    switches.expect("a line").trim().parse().expect("a number")
}

#[test]
fn an_idle_dispatcher_holds_nothing_and_does_nothing() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    let mut observer = cluster.session("postgres");
    session.execute("SELECT recur.create('new year', '@yearly', 'p', 'a')", &[]);
    let pid = dispatcher(&mut observer, "app");
    // It has seen the new action and gone to sleep again, for as long as the safety net allows.
    eventually("it sleeps", || {
        session.count(
            "recur.workers WHERE database = 'app' AND kind = 'dispatcher' AND state = 'sleeping'
                AND wakes_at > clock_timestamp() + interval '50 minutes'",
        ) == 1
    });
    let idle = "SELECT state = 'idle' AND wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $1";
    eventually("it waits", || observer.value::<bool>(idle, &[&pid]));
    let holds_nothing = "SELECT xact_start IS NULL AND backend_xmin IS NULL AND backend_xid IS NULL
                           FROM pg_stat_activity WHERE pid = $1";
    assert!(observer.value::<bool>(holds_nothing, &[&pid]));

    // The clock of this test is another database, in which an action runs every second.
    let mut other = cluster.database("other");
    let before = wake_ups(pid);
    let clock = create(&mut other, "clock", EVERY_SECOND);
    eventually("several seconds have passed", || {
        dispatch_count(&mut other, clock) > 6
    });
    let woken = wake_ups(pid) - before;
    assert!(woken < 3, "woken {woken} times while nothing was due");
}

/// A look at the timers is a transaction, but none that has to be logged.
#[test]
fn looking_uses_up_no_transaction_ids() {
    let cluster = Cluster::preloaded("recur.check_interval = '100ms'\nautovacuum = off");
    let mut session = cluster.database("app");
    session.execute("SELECT recur.create('new year', '@yearly', 'p', 'a')", &[]);
    let looks = |session: &mut Session| -> Vec<DateTime<Utc>> {
        let rows = session.rows("SELECT state_since FROM recur.workers ORDER BY kind", &[]);
        rows.iter().map(|row| row.get(0)).collect()
    };
    eventually("the worker sleeps", || {
        let sleeping = "SELECT count(*) FROM recur.workers WHERE state = 'sleeping'";
        session.value::<i64>(sleeping, &[]) == 1
    });
    let next_id = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text";
    let before: String = session.value(next_id, &[]);
    for _ in 0..3 {
        let last = looks(&mut session);
        eventually("it has looked again", || {
            looks(&mut session)
                .iter()
                .zip(&last)
                .all(|(now, then)| now > then)
        });
    }
    assert_eq!(session.value::<String>(next_id, &[]), before);
}

#[test]
fn a_worker_ends_at_once_when_it_is_terminated() {
    let mut cluster = Cluster::start();
    let mut session = cluster.database("app");
    starts_to_fire(&mut session, "tick");
    let mut observer = cluster.session("postgres");
    let pid = eventually_some("a dispatcher", || {
        dispatchers(&mut observer, "app").first().copied()
    });
    observer.execute("SELECT pg_terminate_backend($1)", &[&pid]);
    eventually("another takes over", || {
        dispatchers(&mut observer, "app")
            .first()
            .is_some_and(|other| *other != pid)
    });
    // A server that has to wait for its workers would not end.
    cluster.stop(Shutdown::Fast);
}

/// Workers outlive their launcher, and the next launcher takes them over instead of starting others beside them.
#[test]
fn a_launcher_that_is_restarted_starts_no_second_set_of_workers() {
    let cluster = Cluster::preloaded("recur.dispatchers = 2");
    let mut session = cluster.database("app");
    starts_to_fire(&mut session, "tick");
    let workers = "SELECT pid FROM pg_stat_activity
                    WHERE backend_type = 'pg_recur dispatcher' ORDER BY pid";
    let before = eventually_some("all workers run", || {
        let pids: Vec<i32> = session.column(workers, &[]);
        (pids.len() == 2).then_some(pids)
    });
    for _ in 0..3 {
        let launcher = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_recur launcher'";
        let terminated: i32 = session.value(launcher, &[]);
        session.execute("SELECT pg_terminate_backend($1)", &[&terminated]);
        eventually("another launcher has started", || {
            let others = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pg_recur launcher' AND pid <> $1";
            session.value::<i64>(others, &[&terminated]) == 1
        });
    }
    // The new launcher serves new databases, which shows that it has looked at the old ones.
    let mut other = cluster.database("other");
    starts_to_fire(&mut other, "tick");
    let pids: Vec<i32> =
        session.column(&workers.replace("ORDER", "AND datname = 'app' ORDER"), &[]);
    assert_eq!(pids, before);
    // And it replaces one that ends.
    session.execute("SELECT pg_terminate_backend($1)", &[&before[0]]);
    eventually("the worker is replaced", || {
        let pids: Vec<i32> =
            session.column(&workers.replace("ORDER", "AND datname = 'app' ORDER"), &[]);
        pids.len() == 2 && !pids.contains(&before[0])
    });
}
