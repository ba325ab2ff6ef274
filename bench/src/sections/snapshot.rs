//! A transaction that somebody has left open: nothing dead can be removed while it is.

use super::consume::{self, Load, Side};
use super::idle;
use super::lateness;
use super::throughput::drain_by_workers;
use crate::Size;
use crate::actions;
use crate::measure::{Samples, grouped, short};
use crate::plot::Plot;
use crate::report::{Report, progress};
use crate::server::{Server, each};
use pg_recur_tests::Session;
use std::time::Duration;

const ACTIONS: i64 = 10_000;

/// Two clusters, the second with a transaction that stays open, and a session in each.
struct Pair {
    servers: [Server; 2],
    sessions: [Session; 2],
}

/// What was measured when so many lay dead; each of the two clusters has its part.
struct Point {
    dead: i64,
    claims: [Samples; 2],
    filtered: [Samples; 2],
    by_hand: [Samples; 2],
    late: [Samples; 2],
}

impl Pair {
    /// Adds what is dead: both queues are filled and emptied.
    fn consume(&mut self, count: i64) {
        let everything = Load {
            count,
            connections: 4,
            batch: 100,
            time: Duration::from_secs(600),
        };
        for side in 0..2 {
            for queue in [Side::OursOnTop, Side::ByHandOnTop] {
                let (server, session) = (&self.servers[side], &mut self.sessions[side]);
                let consumed = queue.measure(server, session, everything);
                progress(&format!(
                    "{} consumed, {} per s",
                    grouped(count as f64),
                    grouped(consumed.per_second)
                ));
            }
        }
    }

    fn measure(&mut self, size: Size, dead: i64) -> Point {
        let mut point = Point {
            dead,
            claims: [Samples::default(), Samples::default()],
            filtered: [Samples::default(), Samples::default()],
            by_hand: [Samples::default(), Samples::default()],
            late: [Samples::default(), Samples::default()],
        };
        for _ in 0..5 {
            for side in 0..2 {
                let load = Load::new(size, 4, 10);
                let (server, session) = (&self.servers[side], &mut self.sessions[side]);
                let ours = Side::OursOnTop.measure(server, session, load).per_second;
                let filtered = Side::OursFiltered.measure(server, session, load).per_second;
                let theirs = Side::ByHandOnTop.measure(server, session, load).per_second;
                progress(&format!(
                    "{} dead: {} claimed and completed per s, with a filter {}, by hand {}",
                    grouped(dead as f64),
                    grouped(ours),
                    grouped(filtered),
                    grouped(theirs)
                ));
                point.claims[side].push(ours);
                point.filtered[side].push(filtered);
                point.by_hand[side].push(theirs);
            }
        }
        for side in 0..2 {
            let (server, session) = (&self.servers[side], &mut self.sessions[side]);
            lateness::every_second(session, 1);
            point.late[side] = lateness::measure(server, if size.full { 40 } else { 10 }, 1).ours;
            lateness::no_more_every_second(session);
        }
        point
    }

    /// CPU of a wake-up that dispatches one.
    fn wake_ups(&mut self) -> [f64; 2] {
        [0, 1].map(|side| {
            let (server, session) = (&self.servers[side], &mut self.sessions[side]);
            lateness::every_second(session, 1);
            let waking = idle::measure(server, session, 5);
            lateness::no_more_every_second(session);
            waking.micros_per_wake
        })
    }
}

pub fn run(size: Size, report: &mut Report) {
    let drains: i64 = if size.full { 30 } else { 10 };
    let points: &[i64] = if size.full {
        &[0, 100_000, 300_000]
    } else {
        &[0, 50_000, 100_000]
    };
    report.text(&format!(
        "Two clusters take turns; in one of them a transaction with a snapshot is open from before the first dispatch to
the end. Both dispatch {} actions {drains} times, {} advances, and consume as many as the first column says; the figures
are taken on the way. Nothing is emptied in between: what is dead lies in the way. All dispatches of a filling become
available at the same time, as a herd does. Beside it, the same with the filter that the shipped consumers send, a
provider and its action types, and the hand-written SQL of the section above. Targets: a tick under 1 ms, and claims
with the filter at least 0.9 times as fast as without the snapshot.",
        grouped(ACTIONS as f64),
        grouped((ACTIONS * drains) as f64),
    ));
    let servers = [Server::start(""), Server::start("")];
    let sessions = servers.each_ref().map(Server::bench);
    let mut pair = Pair { servers, sessions };
    for (server, session) in pair.servers.iter().zip(&mut pair.sessions) {
        server.enable(false, 1);
        actions::fill(session, ACTIONS);
        each(session, consume::TABLES);
        server.enable(true, 1);
    }
    let mut holder = pair.servers[1].bench();
    holder.batch("BEGIN ISOLATION LEVEL REPEATABLE READ");
    holder.batch("SELECT count(*) FROM recur_internal.timers");
    let mut dispatch = [Samples::default(), Samples::default()];
    for round in 0..drains {
        for (side, samples) in dispatch.iter_mut().enumerate() {
            let (server, session) = (&pair.servers[side], &mut pair.sessions[side]);
            samples.push(drain_by_workers(server, session, ACTIONS).per_second);
        }
        progress(&format!(
            "round {round}: {} per s, {} with the snapshot",
            grouped(dispatch[0].0[round as usize]),
            grouped(dispatch[1].0[round as usize])
        ));
    }
    let mut dead = 0;
    let mut measured = Vec::new();
    for &point in points {
        if point > dead {
            pair.consume(point - dead);
            dead = point;
        }
        measured.push(pair.measure(size, dead));
    }
    let ticks = pair.wake_ups();
    holder.batch("COMMIT");
    tables(report, &measured, &dispatch, ticks);
}

fn tables(report: &mut Report, measured: &[Point], dispatch: &[Samples; 2], ticks: [f64; 2]) {
    let ratio = |[without, with]: &[Samples; 2]| with.over(without).ratio();
    let rows: Vec<_> = measured
        .iter()
        .map(|point| {
            let [late, late_held] = &point.late;
            vec![
                grouped(point.dead as f64),
                point.claims[0].rate(),
                point.claims[1].rate(),
                ratio(&point.claims),
                ratio(&point.filtered),
                ratio(&point.by_hand),
                format!("{} / {}", short(late.median()), short(late_held.median())),
                format!(
                    "{} / {}",
                    short(late.quantile(0.99)),
                    short(late_held.quantile(0.99))
                ),
            ]
        })
        .collect();
    report.table(
        &[
            "consumed before",
            "claim and complete/s",
            "with an open snapshot",
            "ratio",
            "ratio with a filter",
            "ratio by hand",
            "lateness p50, ms, without / with",
            "p99",
        ],
        &rows,
    );
    let line = |name: &str, of: fn(&Point) -> &Samples| {
        let places = measured
            .iter()
            .map(|point| (point.dead.max(1_000) as f64, of(point).median()));
        (name.to_owned(), places.collect())
    };
    report.plot(
        "snapshot",
        &Plot {
            title: "Claimed and completed per second while a snapshot is held open".to_owned(),
            x: "consumed before",
            y: "per second",
            log_y: true,
            lines: vec![
                line("pg_recur, without", |point| &point.claims[0]),
                line("pg_recur", |point| &point.claims[1]),
                line("by hand", |point| &point.by_hand[1]),
            ],
        },
    );
    report.table(
        &["", "without", "with an open snapshot", "ratio"],
        &[
            vec![
                "dispatches/s, all rounds".to_owned(),
                dispatch[0].rate(),
                dispatch[1].rate(),
                ratio(dispatch),
            ],
            vec![
                "CPU of a wake-up that dispatches one, µs".to_owned(),
                short(ticks[0]),
                short(ticks[1]),
                short(ticks[1] / ticks[0]),
            ],
        ],
    );
}
