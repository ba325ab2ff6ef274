//! An hour of hostile neighbours, or as long as `PG_RECUR_HOSTILE_SECONDS` says: what the workers remember of all that
//! must not grow. docs/reliability.md has the numbers of a long run.

use crate::number;
use pg_recur_tests::dice::Dice;
use pg_recur_tests::workers::{dispatcher, starts_to_fire};
use pg_recur_tests::{Cluster, Session};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A run of at least this long is measured by the promise, a shorter one only for a leak that is large.
const LONG: u64 = 900;
/// Between two calls of a session: other work shares the machine.
const PAUSE: Duration = Duration::from_millis(20);

/// What an author and consumer does to others. `{n}` is a random number; errors are part of it.
const OF_AN_OWNER: [&str; 34] = [
    "SELECT recur.create('s{n}', '{s} * * * * *', 'own', 'a', jsonb_build_object('k', repeat('x', {n})))",
    "SELECT recur.create('i{n}', 'every ' || (1 + {n} % 3600) || ' seconds', 'own{n}', 'a', horizon_count => 99)",
    "SELECT recur.create('h{n}', '* * * * * *', 'own', 'a', horizon => '1 hour', overlap => 'allow', jitter => '9 s')",
    "SELECT recur.create('c{n}', '* * * * * *', 'own', 'a', overlap => 'cancel_previous', lock_group => 'g{s}')",
    "SELECT recur.create('a{n}', 'at ' || to_char(timezone('UTC', now()) + interval '3 s',
                                                           'YYYY-MM-DD\"T\"HH24:MI:SS'), 'own', 'a')",
    "SELECT count(recur.trigger(id)) FROM recur.recurring_actions, generate_series(1, 20)",
    "SELECT recur.update(id, '{\"schedule\": \"{s} {s} * * * *\"}') FROM recur.recurring_actions LIMIT 20",
    "SELECT recur.update(id, '{\"timezone\": \"Europe/Berlin\", \"labels\": {\"n\": \"{n}\"}}')
       FROM recur.recurring_actions",
    "SELECT recur.pause_all(); SELECT recur.resume_all()",
    "SELECT recur.backfill(id, now() - interval '1 hour', now(), 500) FROM recur.recurring_actions LIMIT 2",
    "SELECT count(recur.enqueue('p' || n, 'a{n}', notify_channel => 'c' || n, dedup_key => 'k{n}'))
       FROM generate_series(1, 150) AS n",
    "SELECT count(recur.enqueue('p' || n, 'a', run_at => clock_timestamp() + interval '1 s'))
       FROM generate_series(1, 500) AS n",
    "SELECT count(*) FROM recur.claim(500, lease => '1 second', consumer => repeat('c', {s}))",
    "SELECT recur.fail(id, attempt, repeat('why', 3000)) FROM recur.claim(50)",
    "SELECT recur.complete(id, attempt, '{\"n\": 1}', '{\"n\": {n}}') FROM recur.claim(2000)",
    "SELECT recur.complete_many(array_agg(id), array_agg(attempt)) FROM recur.claim(5000)",
    "SELECT recur.release(id, attempt) FROM recur.claim(100)",
    "SELECT recur.cancel(id, 'no') FROM recur.dispatches WHERE status = 'pending' LIMIT 200",
    "SELECT recur.retry(id) FROM recur.dead_letters LIMIT 200",
    "SELECT recur.enqueue('p', 'a', repeat('[', {n})::jsonb, lease => '-1 s', run_at => 'infinity')",
    "SELECT recur.delete(id) FROM recur.recurring_actions WHERE NOT enabled OR random() < 0.5",
    "BEGIN; SELECT recur.pause_all(); SELECT pg_sleep(0.3); ROLLBACK",
    "SELECT recur.create_sql('q{n}', '{s} * * * * *', 'SELECT repeat(''x'', {n}) AS c{n}')",
    "SELECT recur.enqueue_sql('SELECT ' || n || ' AS c{n}', name => 'q{n}') FROM generate_series(1, 20) AS n",
    "SELECT recur.enqueue_sql('CREATE TEMPORARY TABLE t{n} AS SELECT n FROM generate_series(1, {n}) AS n;
                               SET search_path = evil; SELECT set_config(''work_mem'', ''64kB'', false); LISTEN c{s}')",
    "SELECT recur.enqueue_sql('DO $$ BEGIN PERFORM pg_advisory_lock({n}); RAISE ''%'', repeat(''no'', {n}); END $$',
                              max_attempts => 2)",
    "SELECT recur.enqueue_sql('SELECT 1 / (random() * 2)::int; SELECT missing{n}')",
    "SELECT recur.drop_handler('handled:*'); SELECT recur.set_handler('handled:*', 'echo(jsonb)')",
    "SELECT recur.enqueue('p', 'handled:' || n, jsonb_build_object('k', repeat('x', {n})))
       FROM generate_series(1, 50) AS n",
    "SELECT recur.create('r{n}', 'RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30;BYHOUR={s}', 'own', 'a')",
    "SELECT recur.create('n{n}', '* * * * * *', 'own', 'a', misfire => 'all', catchup_limit => 2147483647,
                         starts_at => now() - interval '1 hour')",
    "SELECT recur.create('w{n}', '* * * * * *', 'own', 'a', dedup_key => 'w{s}', dedup_window => '1 minute')",
    "SELECT recur.enqueue('p', 'a', ('{\"n\": 1e' || {n} || '}')::jsonb, retry_backoff => '{\"base\": \"-1 s\"}')",
    "SET search_path = evil; SET recur.max_ahead_per_owner = 1; LOCK TABLE recur.dispatches; RESET ALL",
];

/// What a role that may only connect does.
const OF_A_STRANGER: [&str; 4] = [
    "SELECT pg_notify('recur', repeat('x', {n} % 7000)) FROM generate_series(1, 50)",
    "CREATE TEMPORARY TABLE t{n} (n int); DROP TABLE t{n}",
    "BEGIN; CREATE TEMPORARY TABLE t{n} (n int); SELECT pg_advisory_xact_lock(n) FROM generate_series(1, 50) AS n;
     ROLLBACK",
    "LISTEN c{s}; UNLISTEN *",
];

/// What the owner of the database does, and what keeps the data at one size.
const OF_THE_OWNER: [&str; 5] = [
    "VACUUM FULL recur_internal.timers",
    "REINDEX TABLE recur_internal.live_dispatches",
    "CREATE ROLE r{n}; DROP ROLE r{n}",
    "SELECT recur.purge('0')",
    "ANALYZE recur_internal.definitions",
];

fn filled_in(statement: &str, dice: &mut Dice) -> String {
    let (number, small) = (1 + dice.roll(9_000), dice.roll(60));
    statement
        .replace("{n}", &number.to_string())
        .replace("{s}", &small.to_string())
}

/// Calls at random until it is over. Errors do not matter, nor does the end of the session.
fn call(cluster: &Cluster, role: &str, statements: &[&str], seed: u64, state: &State) {
    let mut dice = Dice::new(seed);
    let mut session = cluster.session_as(role, "app");
    while !state.is_over.load(Ordering::Relaxed) {
        let statement = statements[dice.roll(statements.len() as u64) as usize];
        let statement = filled_in(statement, &mut dice);
        if session.0.batch_execute(&statement).is_err() {
            // Ends a transaction that the statement began.
            let _ = session.0.batch_execute("ROLLBACK");
        }
        if session.0.is_closed() {
            session = cluster.session_as(role, "app");
        }
        state.calls.fetch_add(1, Ordering::Relaxed);
        thread::sleep(PAUSE);
    }
}

#[derive(Default)]
struct State {
    is_over: AtomicBool,
    calls: AtomicU64,
}

/// What the process has for itself, in kilobytes; None if it has ended.
fn own_memory(pid: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let own = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))?;
    own.split_whitespace().next()?.parse().ok()
}

/// What the largest worker of each kind has for itself.
fn largest(root: &mut Session) -> BTreeMap<String, u64> {
    let workers = root.rows(
        "SELECT pid, substr(backend_type, length('pg_recur ') + 1) FROM pg_stat_activity
          WHERE backend_type LIKE 'pg\\_recur %' AND (datname = 'app' OR datname IS NULL)",
        &[],
    );
    let mut largest = BTreeMap::new();
    for worker in &workers {
        if let Some(own) = own_memory(worker.get(0)) {
            let most: &mut u64 = largest.entry(worker.get(1)).or_default();
            *most = own.max(*most);
        }
    }
    largest
}

/// The median of each quarter.
fn by_quarter(samples: &[u64]) -> [u64; 4] {
    std::array::from_fn(|quarter| {
        let part = samples.len() / 4;
        let mut samples = samples[quarter * part..(quarter + 1) * part].to_vec();
        samples.sort_unstable();
        samples[samples.len() / 2]
    })
}

fn prepare(root: &mut Session) {
    root.batch(
        "CREATE ROLE attacker LOGIN; CREATE ROLE accomplice LOGIN; CREATE ROLE stranger LOGIN;
         SELECT recur.grant_access(r, l)
           FROM unnest('{attacker,accomplice}'::name[]) AS r, unnest('{author,consumer,sql}'::text[]) AS l",
    );
    for owner in ["attacker", "accomplice"] {
        root.batch(&format!(
            "CREATE SCHEMA {owner} AUTHORIZATION {owner}; SET SESSION AUTHORIZATION {owner};
             CREATE FUNCTION {owner}.echo(payload jsonb) RETURNS jsonb LANGUAGE plpgsql AS
                $$ BEGIN RETURN payload || payload; END $$;
             RESET SESSION AUTHORIZATION"
        ));
    }
}

#[test]
fn the_workers_remember_nothing_of_hostile_calls() {
    let seconds = number("PG_RECUR_HOSTILE_SECONDS", 24);
    let cluster = Cluster::preloaded(
        "log_min_messages = error\nlog_min_error_statement = panic\nshared_buffers = '32MB'\nmax_wal_size = '1GB'
         max_worker_processes = 16\nrecur.executors = 2",
    );
    let mut root = cluster.database("app");
    prepare(&mut root);
    starts_to_fire(&mut root, "heartbeat");
    let worker = dispatcher(&mut root, "app");
    let state = State::default();
    let mut samples: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    thread::scope(|scope| {
        for (seed, role, statements) in [
            (1, "attacker", &OF_AN_OWNER[..]),
            (2, "accomplice", &OF_AN_OWNER[..]),
            (3, "stranger", &OF_A_STRANGER[..]),
            (4, "postgres", &OF_THE_OWNER[..]),
        ] {
            let (cluster, state) = (&cluster, &state);
            scope.spawn(move || call(cluster, role, statements, seed, state));
        }
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end {
            for (kind, own) in largest(&mut root) {
                samples.entry(kind).or_default().push(own);
            }
            thread::sleep(Duration::from_millis(200));
        }
        state.is_over.store(true, Ordering::Relaxed);
    });
    let most = if seconds < LONG { 1.5 } else { 1.05 };
    let calls = state.calls.load(Ordering::Relaxed);
    println!("{calls} calls in {seconds} s; kilobytes by quarter, last / second, most:");
    // A maintenance process comes for a moment.
    samples.retain(|_, samples| samples.len() >= 20);
    for (kind, samples) in &samples {
        let quarters = by_quarter(samples);
        let growth = quarters[3] as f64 / quarters[1] as f64;
        println!(
            "{kind}: {quarters:?}, {growth:.3}, {:?}",
            samples.iter().max()
        );
        assert!(growth <= most, "{kind}: {quarters:?}");
    }
    for kind in ["dispatcher", "launcher", "executor"] {
        assert!(samples.contains_key(kind), "no {kind} was seen");
    }
    let now = dispatcher(&mut root, "app");
    assert_eq!(now, worker, "the worker was not replaced");
}
