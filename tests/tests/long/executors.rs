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

/// Calls of handlers that share transactions, and executors that are killed meanwhile.
#[test]
fn calls_have_their_effects_once_however_often_they_are_killed() {
    const CALLS: i64 = 400;
    let rounds = number("PG_RECUR_EXECUTOR_ROUNDS", 5);
    let seed = number("PG_RECUR_CRASH_SEED", u64::from(std::process::id()));
    println!("PG_RECUR_CRASH_SEED={seed} PG_RECUR_EXECUTOR_ROUNDS={rounds}");
    let mut dice = Dice::new(seed);
    let cluster = Cluster::preloaded("fsync = on");
    let mut session = cluster.database("app");
    session.batch(
        "CREATE TABLE effects (round int, n int, xid text DEFAULT pg_current_xact_id()::text);
         CREATE FUNCTION handle(payload jsonb) RETURNS void LANGUAGE sql AS
             $$ INSERT INTO effects VALUES ((payload ->> 'round')::int, (payload ->> 'n')::int) $$;
         SELECT recur.set_handler('a', 'handle(jsonb)')",
    );
    let mut interrupted = 0;
    for round in 1..=rounds as i64 {
        session.execute(
            "SELECT count(recur.enqueue('app', 'a', jsonb_build_object('round', $1::bigint, 'n', n),
                        max_attempts => 100, retry_backoff => '{\"base\": \"1 ms\", \"factor\": 1, \"cap\": \"1 ms\"}'))
               FROM generate_series(1, $2::bigint) AS n",
            &[&round, &CALLS],
        );
        let pid: i32 = eventually_some("an executor", || {
            let pids: Vec<i32> = session.column(
                "SELECT pid FROM recur.workers WHERE kind = 'executor' AND pid IS NOT NULL",
                &[],
            );
            pids.first().copied()
        });
        std::thread::sleep(Duration::from_micros(dice.roll(200_000)));
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        session = session_after_kill(&cluster, "app", pid);
        interrupted += i64::from(session.count("recur_internal.live_dispatches") > 0);
        eventually("all are completed", || {
            session.count("recur_internal.live_dispatches") == 0
        });
        let (effects, different, completed): (i64, i64, i64) = (
            session.count(&format!("effects WHERE round = {round}")),
            session.count(&format!(
                "(SELECT DISTINCT n FROM effects WHERE round = {round}) AS n"
            )),
            session.count(&format!(
                "recur.dispatches WHERE payload ->> 'round' = '{round}' AND status = 'completed'"
            )),
        );
        assert_eq!(
            (effects, different, completed),
            (CALLS, CALLS, CALLS),
            "round {round}"
        );
    }
    let transactions = session.count("(SELECT DISTINCT xid FROM effects) AS x");
    println!("{rounds} kills, {interrupted} before all was done; {transactions} transactions");
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
             SELECT recur.create_sql(format('action %s', n), '@yearly', format('INSERT INTO seen (n) VALUES (%s)', n))
               FROM generate_series(1, {each}) AS n;
             RESET SESSION AUTHORIZATION"
        ));
    }
    let expected = (owners * each) as i64;
    let started = Instant::now();
    session.batch("SELECT recur.trigger(id) FROM recur.recurring_actions ORDER BY random()");
    eventually("all have run", || {
        let running = session.count("recur.workers WHERE kind = 'executor'");
        assert!(running <= 4, "{running} executors");
        session.count("seen") == expected
    });
    let different: i64 = session.value("SELECT count(DISTINCT (who, n)) FROM seen", &[]);
    assert_eq!(different, expected);
    let took = started.elapsed().as_secs_f64();
    println!("{expected} actions of {owners} owners in {took:.1} s");
}

/// Memory of a process in MB, as the system counts it.
fn resident(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.expect("the system says how much") / 1024
}

#[test]
fn large_rows_and_many_messages_take_no_lasting_memory() {
    let cluster = Cluster::preloaded("recur.executors = 1");
    let mut session = cluster.database("app");
    let mut sizes = Vec::new();
    for round in 1..=4 {
        for command in [
            "SELECT repeat('x', 100000000) AS big, n FROM generate_series(1, 3) AS n",
            "DO $$ BEGIN FOR n IN 1 .. 1000000 LOOP RAISE NOTICE '%', n; END LOOP; END $$",
        ] {
            session.execute("SELECT recur.enqueue_sql($1)", &[&command]);
        }
        eventually("both have run", || {
            session.count("recur.runs WHERE outcome = 'completed'") == 2 * round
        });
        let pid: i32 = session.value("SELECT pid FROM recur.workers WHERE kind = 'executor'", &[]);
        sizes.push((pid, resident(pid)));
    }
    println!("executor and its memory in MB after each round: {sizes:?}");
    let [first, .., last] = sizes[..] else {
        panic!("four rounds");
    };
    assert_eq!(first.0, last.0);
    assert!(last.1 <= first.1 + 5, "{sizes:?}");
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
