//! Everything is due at once: how many dispatches a second, beside what plain SQL can do.

use super::lateness::next_notification;
use crate::Size;
use crate::actions::{self, LATEST};
use crate::limit;
use crate::measure::{Samples, cpu_seconds, grouped};
use crate::plot::Plot;
use crate::report::{Report, progress};
use crate::server::{self, Server, each};
use pg_recur_tests::Session;
use std::time::Instant;

/// What one side needed for one drain.
#[derive(Clone, Copy, Default)]
pub struct Drain {
    pub per_second: f64,
    /// Microseconds of CPU for each dispatch.
    pub cpu: f64,
    /// Bytes for each dispatch.
    pub wal: f64,
}

/// The workers of this server dispatch `count` actions that come due with a commit.
pub fn drain_by_workers(server: &Server, session: &mut Session, count: i64) -> Drain {
    session.batch("TRUNCATE recur_internal.live_dispatches");
    session.batch(LATEST);
    let pids = server.dispatcher_pids();
    let cpu = || pids.iter().map(|pid| cpu_seconds(*pid)).sum::<f64>();
    session.batch("BEGIN");
    session.batch(&actions::make_due("recur_internal.timers"));
    server.bench().batch("CHECKPOINT");
    let mut listener = server.bench();
    listener.batch("LISTEN recur");
    let (wal, cpu_before) = (server::wal_position(session), cpu());
    let started = Instant::now();
    session.batch("COMMIT");
    // To listen takes nothing from those that work, as looking again and again would.
    let mut heard = 0;
    while heard < count {
        let (_, _, text) = next_notification(&mut listener);
        let text: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        heard += text["count"].as_i64().unwrap_or(1);
    }
    let seconds = started.elapsed().as_secs_f64();
    let drain = Drain {
        per_second: count as f64 / seconds,
        cpu: (cpu() - cpu_before) * 1e6 / count as f64,
        wal: (server::wal_position(session) - wal) / count as f64,
    };
    each(
        session,
        "TRUNCATE recur_internal.live_dispatches; VACUUM ANALYZE recur_internal.timers",
    );
    drain
}

/// The same by plain SQL, in this number of sessions.
pub fn drain_by_sql(server: &Server, session: &mut Session, count: i64, sessions: usize) -> Drain {
    session.batch("TRUNCATE bench.dispatches");
    session.batch(LATEST);
    session.batch(&limit::make_due());
    let mut clients: Vec<_> = (0..sessions).map(|_| server.bench()).collect();
    let pids: Vec<i32> = clients
        .iter_mut()
        .map(|client| client.value("SELECT pg_backend_pid()", &[]))
        .collect();
    let cpu = || pids.iter().map(|pid| cpu_seconds(*pid)).sum::<f64>();
    session.batch("CHECKPOINT");
    let (wal, cpu_before) = (server::wal_position(session), cpu());
    let started = Instant::now();
    std::thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| limit::drain(client));
        }
    });
    let seconds = started.elapsed().as_secs_f64();
    let drain = Drain {
        per_second: count as f64 / seconds,
        cpu: (cpu() - cpu_before) * 1e6 / count as f64,
        wal: (server::wal_position(session) - wal) / count as f64,
    };
    each(
        session,
        "TRUNCATE bench.dispatches; VACUUM ANALYZE bench.timers",
    );
    drain
}

/// Both sides in turns.
#[derive(Default)]
pub struct Race {
    pub ours: Vec<Drain>,
    pub limit: Vec<Drain>,
}

impl Race {
    pub fn of(side: &[Drain], what: fn(&Drain) -> f64) -> Samples {
        Samples(side.iter().map(what).collect())
    }

    pub fn ratio(&self, what: fn(&Drain) -> f64) -> Samples {
        Race::of(&self.ours, what).over(&Race::of(&self.limit, what))
    }
}

pub fn race(
    server: &Server,
    session: &mut Session,
    count: i64,
    workers: usize,
    rounds: usize,
) -> Race {
    let mut race = Race::default();
    server.enable(true, workers);
    for round in 0..=rounds {
        let limit = drain_by_sql(server, session, count, workers);
        let ours = drain_by_workers(server, session, count);
        progress(&format!(
            "{} actions, {workers} workers, round {round}: {} per s (limit {}), CPU {:.1} µs ({:.1}), \
             WAL {:.0} bytes ({:.0})",
            grouped(count as f64),
            grouped(ours.per_second),
            grouped(limit.per_second),
            ours.cpu,
            limit.cpu,
            ours.wal,
            limit.wal
        ));
        // The first round warms up.
        if round > 0 {
            race.ours.push(ours);
            race.limit.push(limit);
        }
    }
    race
}

pub fn run(size: Size, report: &mut Report) {
    report.text(
        "All actions are due at once: cron schedules in seven zones, payloads of 300 bytes, default settings (one
dispatcher, batches of 1,000, a NOTIFY a batch). Beside it, in turns, the limit: plain SQL in as many sessions, one
statement a batch, that locks due rows, inserts the same rows into a table with the same columns and indexes, advances
the timers by a constant and sends one NOTIFY. Medians of the rounds, their spread in brackets. CPU time is that of the
dispatchers, or of the sessions: other programs on the machine do not add to it. WAL is that of the whole server, from a
checkpoint on. Target: 0.9 of the limit; at most 2 KB of WAL a dispatch.",
    );
    let sizes: &[(i64, usize)] = match size.full {
        false => &[(1_000, 5), (10_000, 5), (100_000, 2)],
        true => &[(1_000, 15), (100_000, 5), (1_000_000, 3)],
    };
    let rounds = |count| if count < 1_000_000 { 5 } else { 1 };
    let given = size.actions.map(|counts| {
        let counts = counts.iter().map(|count| (*count, rounds(*count)));
        counts.collect::<Vec<_>>()
    });
    let sizes = given.as_deref().unwrap_or(sizes);
    let server = Server::start("");
    let mut session = server.bench();
    let mut rows = Vec::new();
    let mut lines = Vec::new();
    for workers in [1, 2] {
        lines.push((format!("{workers} dispatcher(s)"), Vec::new()));
        lines.push((format!("limit, {workers} session(s)"), Vec::new()));
    }
    for (count, rounds) in sizes {
        server.enable(false, 1);
        actions::fill(&mut session, *count);
        each(&mut session, limit::TABLES);
        for workers in [1, 2] {
            let race = race(&server, &mut session, *count, workers, *rounds);
            let rate = Race::of(&race.ours, |d| d.per_second);
            let limit_rate = Race::of(&race.limit, |d| d.per_second);
            lines[(workers - 1) * 2]
                .1
                .push((*count as f64, rate.median()));
            lines[(workers - 1) * 2 + 1]
                .1
                .push((*count as f64, limit_rate.median()));
            rows.push(vec![
                format!("{}, {workers}", grouped(*count as f64)),
                rate.rate(),
                limit_rate.rate(),
                race.ratio(|d| d.per_second).ratio(),
                race.ratio(|d| 1.0 / d.cpu).ratio(),
                grouped(Race::of(&race.ours, |d| d.wal).median()),
                grouped(Race::of(&race.limit, |d| d.wal).median()),
            ]);
        }
    }
    report.table(
        &[
            "actions, dispatchers",
            "dispatches/s",
            "limit/s",
            "ratio",
            "ratio by CPU time",
            "WAL bytes",
            "limit's",
        ],
        &rows,
    );
    report.plot(
        "throughput",
        &Plot {
            title: "Dispatches per second, all due at once".to_owned(),
            x: "actions",
            y: "dispatches per second",
            log_y: false,
            lines,
        },
    );
}
