//! Commands that the database runs, beside pg_cron; handlers, beside the same function called by hand.

use super::lateness::{cron_server, next_minute, wait_for_room};
use crate::Size;
use crate::measure::{Samples, cpu_seconds, short};
use crate::report::{Report, progress};
use crate::server::{Server, each};
use pg_recur_tests::{Session, Shutdown, eventually};
use std::time::Instant;

const JOBS: i64 = 1_000;
const EXECUTORS: usize = 4;
/// The executors need slots of the server beside the dispatcher's.
const SETTINGS: &str = "max_worker_processes = 16\nrecur.executors = 4";
const RAN: &str = "CREATE TABLE ran (n int, at timestamptz DEFAULT clock_timestamp())";

pub fn run(size: Size, report: &mut Report) {
    beside_cron(size, report);
    handlers(size, report);
}

/// How late the first, the half and the last of them ran, in ms, and how many a second.
struct Minute {
    first: f64,
    half: f64,
    last: f64,
    per_second: f64,
}

/// Waits until each job has run that is due at the next full minute.
fn minute(session: &mut Session) -> Minute {
    let due = next_minute();
    session.batch("TRUNCATE ran");
    let ran = format!("ran WHERE at >= '{due}'");
    eventually("the minute begins", || session.count(&ran) > 0);
    eventually("all have run", || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        session.count(&ran) >= JOBS
    });
    let late: Vec<f64> = session.column(
        &format!(
            "SELECT extract(epoch FROM min(at) - timestamptz '{due}')::float8 * 1000
               FROM {ran} GROUP BY n ORDER BY 1"
        ),
        &[],
    );
    let (first, half, last) = (late[0], late[late.len() / 2], late[late.len() - 1]);
    Minute {
        first,
        half,
        last,
        per_second: JOBS as f64 * 1000.0 / last,
    }
}

fn cron_minute(server: &Server) -> Minute {
    wait_for_room();
    let mut session = server.bench();
    session.execute(
        "SELECT count(cron.schedule('job ' || n, '* * * * *', format('INSERT INTO ran VALUES (%s)', n)))
           FROM generate_series(1, $1::bigint) AS n",
        &[&JOBS],
    );
    let found = minute(&mut session);
    session.batch("SELECT cron.unschedule(jobid) FROM cron.job");
    found
}

fn our_minute(server: &Server) -> Minute {
    wait_for_room();
    let mut session = server.bench();
    session.execute(
        "SELECT count(recur.create_sql('job ' || n, '* * * * *', format('INSERT INTO ran VALUES (%s)', n)))
           FROM generate_series(1, $1::bigint) AS n",
        &[&JOBS],
    );
    let found = minute(&mut session);
    session.batch("SELECT recur.delete(id) FROM recur.recurring_actions");
    found
}

fn beside_cron(size: Size, report: &mut Report) {
    let Some(default) = cron_server() else {
        report.text("pg_cron is not installed: not compared.");
        return;
    };
    let Some(mut best) = cron_server() else {
        return;
    };
    best.cluster.configure(
        "cron.use_background_workers = on\nmax_worker_processes = 64\ncron.max_running_jobs = 32",
    );
    best.cluster.restart(Shutdown::Fast);
    let ours = Server::start(SETTINGS);
    let servers = [&ours, &default, &best];
    for server in servers {
        server.bench().batch(RAN);
    }
    let rounds = if size.full { 5 } else { 1 };
    let mut sides: [[Samples; 4]; 3] = Default::default();
    for round in 0..rounds {
        for (number, server) in servers.into_iter().enumerate() {
            progress(&format!(
                "{JOBS} commands at a full minute, round {round}, side {number}"
            ));
            let found = match number {
                0 => our_minute(server),
                _ => cron_minute(server),
            };
            let values = [found.first, found.half, found.last, found.per_second];
            for (samples, value) in sides[number].iter_mut().zip(values) {
                samples.push(value);
            }
        }
    }
    report.text(
        "1,000 commands due at the same full minute, each an INSERT of one row, with `synchronous_commit` on: pg_recur
with `recur.executors = 4`; pg_cron 1.4 (Debian's) with its default settings, and with `cron.use_background_workers`,
`max_worker_processes = 64` and `cron.max_running_jobs = 32`. Milliseconds after the minute, and runs per second.
Target: five times pg_cron's runs per second.",
    );
    let names = ["first, ms", "half, ms", "last, ms", "runs/s"];
    let rows: Vec<Vec<String>> = names
        .iter()
        .enumerate()
        .map(|(column, name)| {
            let [ours, default, best] = [0, 1, 2].map(|side| &sides[side][column]);
            vec![
                (*name).to_owned(),
                short(ours.median()),
                short(default.median()),
                short(best.median()),
                ours.over(default).ratio(),
                ours.over(best).ratio(),
            ]
        })
        .collect();
    report.table(
        &[
            "",
            "pg_recur",
            "pg_cron, default",
            "pg_cron, best",
            "ours / default",
            "ours / best",
        ],
        &rows,
    );
}

const HANDLE: &str = "
CREATE TABLE bench.seen (n bigint);
CREATE FUNCTION bench.handle(payload jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO bench.seen VALUES ((payload ->> 'n')::bigint);
    RETURN payload;
END $$;
CREATE TABLE bench.jobs (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload jsonb NOT NULL);
CREATE TABLE bench.done (id bigint PRIMARY KEY, payload jsonb NOT NULL, result jsonb);
SELECT recur.set_handler('noop', 'bench.handle(jsonb)')";
const BY_HAND: &str = "
WITH taken AS (
    DELETE FROM bench.jobs WHERE id = ANY (ARRAY(
        SELECT id FROM bench.jobs ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING id, payload
)
INSERT INTO bench.done SELECT id, payload, bench.handle(payload) FROM taken";

/// What jobs have taken.
struct Taken {
    per_second: f64,
    /// CPU time of the processes that did them, in µs for each.
    cpu: f64,
}

impl Taken {
    fn new(jobs: i64, started: Instant, cpu: f64) -> Taken {
        Taken {
            per_second: jobs as f64 / started.elapsed().as_secs_f64(),
            cpu: cpu * 1e6 / jobs as f64,
        }
    }
}

fn cpu_of(pids: &[i32]) -> f64 {
    pids.iter().map(|pid| cpu_seconds(*pid)).sum()
}

/// Calls of the handler.
fn by_handler(server: &Server, dispatches: i64) -> Taken {
    let mut session = server.bench();
    server.set("recur.executors", "0");
    eventually("no executor runs", || {
        session.count("recur.workers WHERE kind = 'executor'") == 0
    });
    each(
        &mut session,
        "TRUNCATE bench.seen; TRUNCATE recur_internal.live_dispatches",
    );
    session.execute(
        "SELECT count(recur.enqueue('bench', 'noop', jsonb_build_object('n', n)))
           FROM generate_series(1, $1::bigint) AS n",
        &[&dispatches],
    );
    let started = Instant::now();
    server.set("recur.executors", &EXECUTORS.to_string());
    eventually("all were handled", || {
        session.count("bench.seen") == dispatches
    });
    let pids: Vec<i32> = session.column(
        "SELECT pid FROM recur.workers WHERE kind = 'executor' AND pid IS NOT NULL",
        &[],
    );
    Taken::new(dispatches, started, cpu_of(&pids))
}

fn by_hand(server: &Server, jobs: i64, batch: i64) -> Taken {
    let mut session = server.bench();
    each(
        &mut session,
        "TRUNCATE bench.seen; TRUNCATE bench.jobs; TRUNCATE bench.done",
    );
    session.execute(
        "INSERT INTO bench.jobs (payload)
         SELECT jsonb_build_object('n', n) FROM generate_series(1, $1::bigint) AS n",
        &[&jobs],
    );
    let mut workers: Vec<Session> = (0..EXECUTORS).map(|_| server.bench()).collect();
    let pids = workers.iter_mut();
    let pids: Vec<i32> = pids
        .map(|worker| worker.value("SELECT pg_backend_pid()", &[]))
        .collect();
    let (started, cpu_before) = (Instant::now(), cpu_of(&pids));
    std::thread::scope(|scope| {
        for worker in &mut workers {
            scope.spawn(move || {
                let statement = worker.0.prepare(BY_HAND).expect("a plan");
                while worker.0.execute(&statement, &[&batch]).expect("rows") > 0 {}
            });
        }
    });
    Taken::new(jobs, started, cpu_of(&pids) - cpu_before)
}

fn handlers(size: Size, report: &mut Report) {
    let server = Server::start(SETTINGS);
    each(&mut server.bench(), "CREATE TABLE bench.warm ()");
    server.bench().batch(HANDLE);
    let (rounds, dispatches) = if size.full { (7, 40_000) } else { (3, 20_000) };
    let batches = [1, 10, 100];
    let mut ours: [Samples; 2] = Default::default();
    let mut hand: [[Samples; 2]; 3] = Default::default();
    for round in 0..=rounds {
        progress(&format!("{dispatches} calls of a handler, round {round}"));
        let taken = by_handler(&server, dispatches);
        let by_hand = batches.map(|batch| by_hand(&server, dispatches, batch));
        if round > 0 {
            let add = |samples: &mut [Samples; 2], taken: &Taken| {
                samples[0].push(taken.per_second);
                samples[1].push(taken.cpu);
            };
            add(&mut ours, &taken);
            for (samples, taken) in hand.iter_mut().zip(&by_hand) {
                add(samples, taken);
            }
        }
    }
    report.text(
        "Calls of a handler, a PL/pgSQL function that inserts a row, by four executors: fast calls share a transaction,
each in a subtransaction, and are completed by one statement. By hand the same function on four connections, in one
statement that takes jobs with SKIP LOCKED, calls it and writes the result, for batches of 1, 10 and 100 jobs a
transaction; what fails there takes its whole batch along. The time of the executors includes their start. CPU time is
that of the processes that do the jobs, for each job. Target: 0.8.",
    );
    let rows: Vec<Vec<String>> = batches
        .iter()
        .zip(&hand)
        .map(|(batch, hand)| {
            vec![
                batch.to_string(),
                ours[0].rate(),
                hand[0].rate(),
                ours[0].over(&hand[0]).ratio(),
                short(ours[1].median()),
                short(hand[1].median()),
                hand[1].over(&ours[1]).ratio(),
            ]
        })
        .collect();
    report.table(
        &[
            "batch by hand",
            "ours/s",
            "by hand/s",
            "ratio",
            "ours: CPU µs",
            "by hand: CPU µs",
            "by hand / ours",
        ],
        &rows,
    );
}
