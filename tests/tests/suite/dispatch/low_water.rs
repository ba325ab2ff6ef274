//! The low-water mark: what earlier runs have left in the index is not walked through again and again, and yet nothing
//! that is set to an earlier instant is overlooked.

use pg_recur_tests::timers::{of_action, set_due};
use pg_recur_tests::{Cluster, Session, Shutdown, eventually};
use uuid::Uuid;

const ACTIONS: i64 = 2_000;
const ROUNDS: i64 = 5;

fn runs(session: &mut Session, name: &str) -> i64 {
    session.value(
        "SELECT run_count FROM recur.recurring_actions WHERE name = $1",
        &[&name],
    )
}

/// Entries that scans of the index of due timers have read. The worker reports after each transaction that wrote.
fn entries_read(session: &mut Session) -> i64 {
    session.value(
        "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'timers_due'",
        &[],
    )
}

#[test]
fn a_held_snapshot_does_not_make_every_tick_slower() {
    let cluster = Cluster::preloaded("autovacuum = off\nstats_fetch_consistency = none");
    let mut session = cluster.database("app");
    session.execute(
        "SELECT count(recur.create('a' || n, '@yearly', 'p', 't'))
           FROM generate_series(1, $1::bigint) AS n",
        &[&ACTIONS],
    );
    let mut holder = cluster.session("app");
    holder
        .batch("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM recur_internal.timers");
    // Each round leaves an entry for every action behind, all of them in the past.
    for _ in 0..ROUNDS {
        set_due(&mut session, "clock_timestamp() - interval '1 hour'", "");
        eventually("all have run", || {
            session.count("recur_internal.timers WHERE due_at < now()") == 0
        });
    }
    session.batch("SELECT recur.create('tick', '* * * * * *', 'p', 't')");
    // How many entries there are to walk through, for one that looks from the beginning of time.
    let before = entries_read(&mut session);
    session.batch("SET enable_seqscan = off; SET enable_bitmapscan = off");
    session.batch("SELECT count(*)
                     FROM (SELECT due_at FROM recur_internal.timers WHERE due_at <= now() - interval '30 minutes'
                            ORDER BY due_at) AS past");
    session.batch("SELECT pg_stat_force_next_flush()");
    let to_walk = entries_read(&mut session) - before;
    assert!(to_walk >= ACTIONS * ROUNDS, "{to_walk} entries");

    // Once a minute it does look at everything: hence the least of several.
    let least = (0..3)
        .map(|_| {
            let (seen, read) = (runs(&mut session, "tick"), entries_read(&mut session));
            eventually("it fires", || runs(&mut session, "tick") > seen);
            entries_read(&mut session) - read
        })
        .min()
        .unwrap();
    assert!(least < 200, "a tick reads {least} of {to_walk} entries");
}

/// An action in the far future, so that the mark is high.
fn prepared(cluster: &Cluster) -> Session {
    let mut session = cluster.database("app");
    session.batch("SELECT recur.create('far', '@yearly', 'p', 't')");
    asleep(&mut session);
    session
}

fn asleep(session: &mut Session) {
    let asleep = "SELECT count(*) FROM recur.workers
                   WHERE database = 'app' AND kind = 'dispatcher' AND state = 'sleeping'
                     AND wakes_at > clock_timestamp() + interval '10 minutes'";
    eventually("it sleeps", || session.value::<i64>(asleep, &[]) == 1);
}

#[test]
fn an_earlier_instant_is_seen_at_once() {
    // The safety net is an hour wide: whatever fires below fires because it was heard of.
    let cluster = Cluster::preloaded("max_prepared_transactions = 5");
    let mut session = prepared(&cluster);
    let dispatched = |session: &mut Session, name: &str| -> i64 {
        session.value(
            "SELECT count(*) FROM recur.dispatches AS d JOIN recur_internal.definitions AS a ON a.id = d.action_id
              WHERE a.name = $1",
            &[&name],
        )
    };
    session.batch("SELECT recur.create('created', '1h', 'p', 't')");
    eventually("a new one", || dispatched(&mut session, "created") == 1);

    let far: Uuid = session.value(
        "SELECT id FROM recur_internal.definitions WHERE name = 'far'",
        &[],
    );
    session.execute(
        "SELECT recur.update($1::uuid, '{\"schedule\": \"* * * * * *\", \"max_runs\": 1}')",
        &[&far],
    );
    eventually("an edited one", || dispatched(&mut session, "far") == 1);

    set_due(&mut session, "now()", "enabled");
    eventually("one set by hand", || {
        dispatched(&mut session, "created") == 2
    });

    // (PostgreSQL prepares no transaction that notifies, as recur.create does.)
    session.batch("SELECT recur.create('prepared', '@yearly', 'p', 't')");
    session.batch("BEGIN");
    set_due(&mut session, "now()", &of_action("prepared"));
    session.batch("PREPARE TRANSACTION 'later'");
    assert_eq!(dispatched(&mut session, "prepared"), 0);
    session.batch("COMMIT PREPARED 'later'");
    eventually("one of a prepared transaction", || {
        dispatched(&mut session, "prepared") == 1
    });
}

/// Moves a timer to now, in a transaction that is committed later.
fn prepare_a_run(session: &mut Session, name: &str) {
    session.batch("SELECT recur.create('prepared', '@yearly', 'p', 't', on_existing => 'upsert')");
    session.batch("BEGIN");
    set_due(session, "now()", &of_action("prepared"));
    session.batch(&format!("PREPARE TRANSACTION '{name}'"));
}

#[test]
fn what_was_prepared_before_a_restart_is_seen_when_it_is_committed() {
    let mut cluster = Cluster::preloaded("max_prepared_transactions = 5");
    let mut session = prepared(&cluster);
    for (round, shutdown) in [Shutdown::Fast, Shutdown::Immediate]
        .into_iter()
        .enumerate()
    {
        prepare_a_run(&mut session, "later");
        cluster.restart(shutdown);
        session = cluster.session("app");
        asleep(&mut session);
        assert_eq!(runs(&mut session, "prepared"), round as i64);
        session.batch("COMMIT PREPARED 'later'");
        eventually("it fires", || {
            runs(&mut session, "prepared") == round as i64 + 1
        });
    }
}

/// Unrelated transactions change nothing that the dispatcher has to look at again.
#[test]
fn an_unrelated_prepared_transaction_repeats_no_announcement() {
    let cluster = Cluster::preloaded("max_prepared_transactions = 5");
    let mut session = prepared(&cluster);
    let mut listener = cluster.session("app");
    listener.batch("LISTEN recur");
    let later =
        "SELECT count(recur.enqueue($1, 't', run_at => clock_timestamp() + interval '100 ms'))
                   FROM generate_series(1, $2::int) AS n";
    session.execute(later, &[&"waiting", &50]);
    for _ in 0..50 {
        assert_eq!(listener.notification()["provider"], "waiting");
    }
    // One that has news, and is not committed, makes no others out to have some; nor does one that is rolled back.
    prepare_a_run(&mut session, "news");
    session.batch("CREATE TABLE unrelated (n int)");
    for end in ["COMMIT", "ROLLBACK", "COMMIT", "COMMIT"] {
        session.batch("BEGIN; INSERT INTO unrelated VALUES (1); PREPARE TRANSACTION 'no news'");
        session.batch(&format!("{end} PREPARED 'no news'"));
    }
    session.batch("ROLLBACK PREPARED 'news'");
    // What was announced because of those was announced before this.
    session.execute(later, &[&"last", &1]);
    assert_eq!(listener.notification()["provider"], "last");
    assert_eq!(runs(&mut session, "prepared"), 0);

    prepare_a_run(&mut session, "news");
    session.batch("COMMIT PREPARED 'news'");
    eventually("its news arrive", || runs(&mut session, "prepared") == 1);
}

#[test]
fn what_is_restored_is_seen_at_once() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT count(recur.create('a' || n, '* * * * * *', 'p', 't', misfire => 'all'))
           FROM generate_series(1, 5) AS n",
    );
    eventually("they fire", || runs(&mut session, "a5") > 0);
    let dump = cluster.dump("app");
    cluster.empty_database("restored", "");
    cluster.run_script("restored", &dump);
    let mut restored = cluster.session("restored");
    restored.batch("SELECT recur.arm()");
    let seen = runs(&mut restored, "a1");
    eventually("they fire where they were restored", || {
        (1..=5).all(|n| runs(&mut restored, &format!("a{n}")) > seen)
    });
    // Where they left off: none lost, none doubled.
    assert_eq!(
        restored.count(
            "(SELECT scheduled_at - lag(scheduled_at) OVER (PARTITION BY action_id ORDER BY scheduled_at) AS step
                FROM recur.dispatches) AS steps WHERE step <> interval '1 second'"
        ),
        0
    );
}
