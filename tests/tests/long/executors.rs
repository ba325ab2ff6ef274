//! Executors that are killed again and again, and many owners that share a few of them.
//!
//! A few rounds and owners by default; `make test-crash` asks for more.

use crate::number;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pg_recur_tests::dice::Dice;
use pg_recur_tests::workers::session_after_kill;
use pg_recur_tests::{Cluster, Shutdown, eventually, eventually_some};
use std::time::{Duration, Instant};
use uuid::Uuid;

#[test]
fn a_run_has_its_effect_once_however_often_it_is_killed() {
    let rounds = number("PG_RECUR_EXECUTOR_ROUNDS", 5);
    let seed = number("PG_RECUR_CRASH_SEED", u64::from(std::process::id()));
    println!("PG_RECUR_CRASH_SEED={seed} PG_RECUR_EXECUTOR_ROUNDS={rounds}");
    let mut dice = Dice::new(seed);
    let cluster = Cluster::preloaded("fsync = on");
    let mut session = cluster.database("app");
    session.batch("CREATE TABLE effects (id uuid)");
    let mut twice = 0;
    for round in 1..=rounds {
        let command =
            "INSERT INTO effects SELECT id FROM recur.dispatches WHERE status = 'running';
                       SELECT pg_sleep(random() * 0.02)";
        let id: Uuid = session.value(
            "SELECT recur.enqueue_sql($1, max_attempts => 100)",
            &[&command],
        );
        let pid: i32 = eventually_some("an executor", || {
            let pids: Vec<i32> = session.column(
                "SELECT pid FROM recur.workers WHERE kind = 'executor' AND pid IS NOT NULL",
                &[],
            );
            pids.first().copied()
        });
        std::thread::sleep(Duration::from_micros(dice.roll(30_000)));
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        session = session_after_kill(&cluster, "app", pid);
        let attempt: i32 = eventually_some("it is completed", || {
            let attempts: Vec<i32> = session.column(
                "SELECT attempt FROM recur.dispatches WHERE id = $1 AND status = 'completed'",
                &[&id],
            );
            attempts.first().copied()
        });
        twice += i32::from(attempt > 1);
        let effects: i64 = session.value("SELECT count(*) FROM effects WHERE id = $1", &[&id]);
        assert_eq!(effects, 1, "round {round}, attempt {attempt}");
    }
    println!("{rounds} kills, {twice} of them in the middle of a run");
}

#[test]
fn many_owners_share_a_few_executors() {
    let owners = number("PG_RECUR_SQL_OWNERS", 20);
    let each = number("PG_RECUR_SQL_ACTIONS", 20);
    let cluster = Cluster::preloaded("max_worker_processes = 16\nrecur.executors = 4\nfsync = on");
    let mut session = cluster.database("app");
    session.batch(
        "CREATE TABLE seen (who name DEFAULT current_user, n int); GRANT INSERT ON seen TO PUBLIC",
    );
    for owner in 1..=owners {
        session.batch(&format!(
            "CREATE ROLE owner{owner} LOGIN; SELECT recur.grant_access('owner{owner}', 'sql');
             SET SESSION AUTHORIZATION owner{owner};
             SELECT recur.enqueue_sql(format('INSERT INTO seen (n) VALUES (%s)', n), now() + interval '10 seconds')
               FROM generate_series(1, {each}) AS n;
             RESET SESSION AUTHORIZATION"
        ));
    }
    let expected = (owners * each) as i64;
    eventually("all have run", || {
        let running = session.count("recur.workers WHERE kind = 'executor'");
        assert!(running <= 4, "{running} executors");
        session.count("seen") == expected
    });
    let different: i64 = session.value("SELECT count(DISTINCT (who, n)) FROM seen", &[]);
    assert_eq!(different, expected);
}

/// pg_cron and what was imported from it fire side by side, and cover the same minutes.
#[test]
fn an_import_fires_in_the_minutes_of_pg_cron() {
    let minutes = number("PG_RECUR_CRON_MINUTES", 1) as i64;
    let available = "pg_available_extensions WHERE name = 'pg_cron'";
    if Cluster::quiet().database("app").count(available) == 0 {
        println!("skipped: this server has no pg_cron (scripts/pg-cron.sh installs Debian's)");
        return;
    }
    let mut cluster = Cluster::preloaded(
        "shared_preload_libraries = 'pg_recur, pg_cron'\ncron.database_name = 'app'\nmax_worker_processes = 16",
    );
    // pg_cron connects to the server as any client does.
    let sockets = cluster.sockets().display().to_string();
    cluster.configure(&format!("cron.host = '{sockets}'"));
    cluster.restart(Shutdown::Fast);
    let mut session = cluster.database("app");
    session.batch(
        "CREATE EXTENSION pg_cron;
         CREATE TABLE fired (minute timestamptz DEFAULT date_trunc('minute', clock_timestamp()), application text
                             DEFAULT current_setting('application_name'));
         SELECT cron.schedule('each', '* * * * *', 'INSERT INTO fired DEFAULT VALUES');
         SELECT recur.import_pg_cron(dry_run => false);",
    );
    let covered = "SELECT count(*) FROM (SELECT minute FROM fired GROUP BY minute
                    HAVING count(*) FILTER (WHERE application LIKE 'pg_recur%') = 1
                       AND count(*) FILTER (WHERE application NOT LIKE 'pg_recur%') = 1) AS covered";
    let deadline = Instant::now() + Duration::from_secs(60 * (minutes as u64 + 3));
    while session.value::<i64>(covered, &[]) < minutes {
        assert!(Instant::now() < deadline, "not covered by both");
        std::thread::sleep(Duration::from_millis(200));
        // A minute that has passed was covered by both, except for the one in which they began.
        let missed: i64 = session.value(
            "SELECT count(*) FROM (SELECT minute FROM fired GROUP BY minute HAVING count(*) <> 2) AS m
              WHERE minute < date_trunc('minute', now() - interval '30 seconds')
                AND minute > (SELECT min(minute) FROM fired)",
            &[],
        );
        assert_eq!(missed, 0);
    }
}
