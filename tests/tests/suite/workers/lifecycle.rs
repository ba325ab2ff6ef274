//! Extensions, databases and settings that come and go while the server runs.

use chrono::{DateTime, Utc};
use pg_recur_tests::{Cluster, Session, Shutdown, eventually, eventually_some};
use std::fs;

fn dispatchers(session: &mut Session, database: &str) -> Vec<i32> {
    session
        .rows(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_recur dispatcher' AND datname = $1",
            &[&database],
        )
        .iter()
        .map(|row| row.get(0))
        .collect()
}

fn fires(session: &mut Session, name: &str) {
    session.execute("SELECT recur.create($1, '* * * * * *', 'p', 'a')", &[&name]);
    eventually("it fires", || {
        session.value::<i64>("SELECT count(*) FROM recur.dispatches", &[]) > 0
    });
}

#[test]
fn the_extension_can_be_dropped_and_created_again() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    let mut observer = cluster.session("postgres");
    fires(&mut session, "first");
    for _ in 0..3 {
        session.batch("DROP EXTENSION pg_recur CASCADE");
        eventually("the dispatcher leaves", || {
            dispatchers(&mut observer, "app").is_empty()
        });
        session.batch("CREATE EXTENSION pg_recur");
        fires(&mut session, "again");
    }
    // In one transaction, too.
    session.batch("BEGIN; DROP EXTENSION pg_recur CASCADE; CREATE EXTENSION pg_recur; COMMIT");
    fires(&mut session, "at once");
}

/// The workers remember where their indexes are, and who owns the tables.
#[test]
fn what_is_rebuilt_or_given_away_while_the_workers_sleep_is_found_again() {
    let cluster = Cluster::preloaded("recur.check_interval = '200ms'");
    let mut session = cluster.database("app");
    fires(&mut session, "tick");
    session.batch("SELECT recur.pause(recur.id_of('tick')); CREATE ROLE keeper; GRANT ALL ON SCHEMA recur TO keeper");
    let failures = || cluster.log().matches("failed").count();
    let before = failures();
    // This one makes a new index and drops the old one.
    for index in [
        "timers_due",
        "live_dispatches_later",
        "live_dispatches_leased",
    ] {
        session.batch(&format!("REINDEX INDEX CONCURRENTLY recur.{index}"));
    }
    session.batch("SELECT count(recur.complete(id, attempt)) FROM recur.claim(1000)");
    session.batch("SELECT recur.resume(recur.id_of('tick'))");
    // Dispatched, heard of, claimed, and taken back when the lease is over: each is found through one of them.
    session.batch("LISTEN recur");
    assert_eq!(session.notification()["provider"], "p");
    eventually("one can be claimed", || {
        session.value::<i64>("SELECT count(*) FROM recur.claim(1, lease => '10 ms')", &[]) == 1
    });
    eventually("the lease has expired", || {
        session.value::<i64>(
            "SELECT count(*) FROM recur.dispatches WHERE error = 'lease expired'",
            &[],
        ) == 1
    });
    // As whom they act follows the tables' owner at once.
    session.batch(
        "CREATE TABLE acted (who text); GRANT INSERT ON acted TO PUBLIC;
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
             $$BEGIN INSERT INTO public.acted VALUES (current_user); RETURN NULL; END$$;
         CREATE TRIGGER note AFTER INSERT ON recur.live_dispatches FOR EACH STATEMENT EXECUTE FUNCTION note()",
    );
    let acts_as = |session: &mut Session, role: &str| {
        eventually("a dispatch is written as that role", || {
            session.value("SELECT $1 IN (SELECT who FROM acted)", &[&role])
        });
    };
    acts_as(&mut session, "postgres");
    session.batch(
        "DO $$DECLARE t regclass; BEGIN
             FOR t IN SELECT c.oid FROM pg_class AS c WHERE c.relnamespace = 'recur'::regnamespace AND c.relkind IN ('r', 'p', 'v') LOOP
                 EXECUTE format('ALTER TABLE %s OWNER TO keeper', t);
             END LOOP;
         END$$;
         GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA recur TO keeper",
    );
    acts_as(&mut session, "keeper");
    assert_eq!(failures(), before, "{}", cluster.log());
}

#[test]
fn a_database_can_be_dropped_renamed_and_copied_while_its_dispatcher_sleeps() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    fires(&mut session, "tick");
    drop(session);
    let mut admin = cluster.session("postgres");

    admin.batch("CREATE DATABASE copy TEMPLATE app");
    let mut copy = cluster.session("copy");
    let before: i64 = copy.value("SELECT count(*) FROM recur.dispatches", &[]);
    eventually("the copy fires by itself", || {
        copy.value::<i64>("SELECT count(*) FROM recur.dispatches", &[]) > before
    });
    drop(copy);

    admin.batch("ALTER DATABASE app RENAME TO renamed");
    let mut renamed = cluster.session("renamed");
    let before: i64 = renamed.value("SELECT count(*) FROM recur.dispatches", &[]);
    eventually("the renamed one goes on", || {
        renamed.value::<i64>("SELECT count(*) FROM recur.dispatches", &[]) > before
    });
    drop(renamed);

    // Each of these waits 5 seconds for others to leave and then fails, should anybody stay.
    admin.batch("DROP DATABASE copy");
    admin.batch("DROP DATABASE renamed");
    eventually("no dispatcher is left", || {
        dispatchers(&mut admin, "copy").is_empty() && dispatchers(&mut admin, "renamed").is_empty()
    });
}

#[test]
fn a_command_that_fails_gives_the_database_back() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    fires(&mut session, "tick");
    // We are connected to it ourselves: it can't be dropped.
    let mut admin = cluster.session("postgres");
    let (code, ..) = admin.error("DROP DATABASE app");
    assert_eq!(code, "55006");
    let before: i64 = session.value("SELECT count(*) FROM recur.dispatches", &[]);
    eventually("it goes on", || {
        session.value::<i64>("SELECT count(*) FROM recur.dispatches", &[]) > before
    });
}

#[test]
fn settings_take_effect_on_reload() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    let mut observer = cluster.session("postgres");
    fires(&mut session, "tick");

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

#[test]
fn an_idle_dispatcher_holds_nothing_and_does_nothing() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    let mut observer = cluster.session("postgres");
    session.execute("SELECT recur.create('new year', '@yearly', 'p', 'a')", &[]);
    let pid = eventually_some("a dispatcher", || {
        dispatchers(&mut observer, "app").first().copied()
    });
    // It has seen the new action and gone to sleep again.
    eventually("it sleeps", || {
        observer.value::<bool>("SELECT state = 'idle' AND wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $1", &[&pid])
    });
    let row = &observer.rows("SELECT xact_start IS NULL, backend_xmin IS NULL, backend_xid IS NULL FROM pg_stat_activity WHERE pid = $1", &[&pid])[0];
    assert!(row.get::<_, bool>(0) && row.get::<_, bool>(1) && row.get::<_, bool>(2));

    // Context switches count wake-ups exactly, on a slow machine too: an idle process has none.
    let voluntary = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("voluntary_ctxt_switches"))
            .unwrap();
        line.split_whitespace()
            .last()
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let before = voluntary();
    // Thirty seconds in the life of another server process, which has a clock of its own.
    observer.batch("SELECT pg_sleep(30)");
    let woken = voluntary() - before;
    assert!(
        woken <= 2,
        "woken {woken} times while nothing was to be done"
    );
}

/// A look at the timers is a transaction, but none that has to be logged.
#[test]
fn looking_uses_up_no_transaction_ids() {
    let cluster = Cluster::preloaded("recur.check_interval = '100ms'\nautovacuum = off");
    let mut session = cluster.database("app");
    session.execute("SELECT recur.create('new year', '@yearly', 'p', 'a')", &[]);
    let looks = |session: &mut Session| -> Vec<DateTime<Utc>> {
        let rows = session.rows("SELECT state_since FROM recur.workers ORDER BY duty", &[]);
        rows.iter().map(|row| row.get(0)).collect()
    };
    eventually("both workers sleep", || {
        let sleeping = "SELECT count(*) FROM recur.workers WHERE state = 'sleeping'";
        session.value::<i64>(sleeping, &[]) == 2
    });
    let next_id = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text";
    let before: String = session.value(next_id, &[]);
    for _ in 0..3 {
        let last = looks(&mut session);
        eventually("both have looked again", || {
            looks(&mut session)
                .iter()
                .zip(&last)
                .all(|(now, then)| now > then)
        });
    }
    assert_eq!(session.value::<String>(next_id, &[]), before);
}

#[test]
fn a_worker_ends_at_once_when_told_to() {
    let mut cluster = Cluster::start();
    let mut session = cluster.database("app");
    fires(&mut session, "tick");
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

#[test]
fn without_preload_everything_works_but_the_worker() {
    let cluster = Cluster::with("");
    let mut session = cluster.database("app");
    assert!(
        cluster
            .log()
            .contains("WARNING:  pg_recur is not preloaded: nothing fires by itself")
    );
    session.execute("SELECT recur.create('tick', '* * * * * *', 'p', 'a')", &[]);
    let at = "(SELECT next_run_at FROM recur.recurring_actions)";
    let dispatched: i64 = session.value(&format!("SELECT dispatched FROM recur.tick({at})"), &[]);
    assert_eq!(dispatched, 1);
    let count: i64 = session.value("SELECT count(*) FROM recur.dispatches", &[]);
    assert_eq!(count, 1);
}

#[test]
fn a_schema_that_somebody_else_made_is_not_adopted() {
    let cluster = Cluster::quiet();
    cluster.empty_database("app", "");
    let mut session = cluster.session("app");
    session.batch("CREATE SCHEMA recur");
    let (code, ..) = session.error("CREATE EXTENSION pg_recur");
    assert_eq!(code, "42P06");
}

/// Texts go through Rust, whose strings are UTF-8.
#[test]
fn other_encodings_are_refused() {
    let cluster = Cluster::quiet();
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let database = encoding.to_lowercase();
        cluster.empty_database(
            &database,
            &format!("ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"),
        );
        let name = cluster.name_of(&database);
        assert_eq!(
            cluster
                .session(&database)
                .error("CREATE EXTENSION pg_recur"),
            (
                "0A000".into(),
                format!("pg_recur needs a database in UTF8, and \"{name}\" is in {encoding}"),
                "CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0 makes one.".into()
            )
        );
    }
}
