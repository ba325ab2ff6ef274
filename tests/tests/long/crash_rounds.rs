//! Two thousand schedules, and a server that dies again and again: none lost, none doubled.
//!
//! A few rounds by default; `make test-crash` plays fifty. `PG_RECUR_CRASH_SEED` repeats what a failure has printed.

use crate::number;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pg_recur_tests::dice::Dice;
use pg_recur_tests::workers::{dispatcher, session_after_kill};
use pg_recur_tests::{Cluster, Session, Shutdown, books, eventually};
use std::time::Duration;

const EVERY_SECOND: i64 = 1_950;
const IN_BURSTS: i64 = 50;

/// One of these per second each, with every misfire policy in turn; and bursts, all of them due at the same instants.
fn create(session: &mut Session) {
    session.execute(
        "SELECT count(recur.create('each ' || n, '* * * * * *', 'p', 't', catchup_limit => 10,
                                   misfire => (ARRAY['once', 'skip', 'all'])[1 + n % 3]))
           FROM generate_series(1, $1::bigint) AS n",
        &[&EVERY_SECOND],
    );
    session.execute(
        "SELECT count(recur.create('burst ' || n, '*/5 * * * * *', 'p', 't', misfire_grace => '4 seconds',
                                   misfire => (ARRAY['once', 'skip', 'all'])[1 + n % 2]))
           FROM generate_series(1, $1::bigint) AS n",
        &[&IN_BURSTS],
    );
}

fn runs(session: &mut Session) -> Option<i64> {
    let row = session.0.query_one(
        "SELECT sum(run_count)::bigint FROM recur_internal.timers",
        &[],
    );
    row.ok()?.get(0)
}

/// Long enough, now and then, for several occurrences to be missed.
fn stay_down(dice: &mut Dice) {
    std::thread::sleep(Duration::from_millis(dice.roll(4_000)));
}

#[test]
fn no_occurrence_is_lost_or_doubled() {
    let rounds = number("PG_RECUR_CRASH_ROUNDS", 3);
    let seed = number("PG_RECUR_CRASH_SEED", u64::from(std::process::id()));
    println!("PG_RECUR_CRASH_SEED={seed} PG_RECUR_CRASH_ROUNDS={rounds}");
    let mut dice = Dice::new(seed);
    let mut cluster = Cluster::preloaded(
        "fsync = on\nrecur.dispatchers = 2\nrecur.batch_size = 300\nmax_wal_size = '2GB'",
    );
    let mut session = cluster.database("app");
    create(&mut session);
    for round in 1..=rounds {
        let before = runs(&mut session).expect("a session");
        eventually("they fire", || {
            runs(&mut session).is_some_and(|now| now > before)
        });
        // At any moment of the second. This is not waited for: it is when the blow falls.
        std::thread::sleep(Duration::from_millis(dice.roll(1_500)));
        let blow = match dice.roll(3) {
            0 => {
                let pid = dispatcher(&mut session, "app");
                drop(session);
                kill(Pid::from_raw(pid), Signal::SIGKILL).expect("kill");
                session = session_after_kill(&cluster, "app", pid);
                "a dispatcher was killed"
            }
            1 => {
                drop(session);
                cluster.stop(Shutdown::Kill);
                stay_down(&mut dice);
                cluster.launch();
                session = cluster.session("app");
                "the postmaster was killed"
            }
            _ => {
                drop(session);
                cluster.stop(Shutdown::Immediate);
                stay_down(&mut dice);
                cluster.launch();
                session = cluster.session("app");
                "the server was stopped at once"
            }
        };
        let before = runs(&mut session).expect("a session");
        eventually("it goes on by itself", || {
            runs(&mut session).is_some_and(|now| now > before)
        });
        let (dispatched, skipped) = books::check(&mut session);
        println!("round {round}: {blow}; {dispatched} dispatched, {skipped} skipped");
    }
    // Once more when it has caught up.
    eventually("nothing is overdue", || {
        session.count("recur_internal.timers WHERE due_at < now() - interval '2 seconds'") == 0
    });
    books::check(&mut session);
}
