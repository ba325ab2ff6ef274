//! A transaction that somebody has left open: nothing dead can be removed while it is.

use super::consume::{self, Load, Side};
use super::idle;
use super::lateness;
use super::throughput::drain_by_workers;
use crate::Size;
use crate::actions;
use crate::measure::{Samples, grouped, short};
use crate::report::{Report, progress};
use crate::server::{Server, each};
use std::time::Duration;

const ACTIONS: i64 = 10_000;
const CONSUMED: i64 = 100_000;

pub fn run(size: Size, report: &mut Report) {
    let drains: i64 = if size.full { 30 } else { 6 };
    report.text(&format!(
        "Two clusters take turns; in one of them a transaction with a snapshot is open from before the first dispatch to the end. Both
dispatch {} actions {drains} times, {} advances, and consume {}; then the figures are taken. Nothing is emptied in between: what is
dead lies in the way. All dispatches of a filling become available at the same time, as a herd does.
Beside it, for claims, the hand-written SQL of the section above. Targets: a tick under 1 ms, and
claims at least half as fast as without.",
        grouped(ACTIONS as f64),
        grouped((ACTIONS * drains) as f64),
        grouped(CONSUMED as f64)
    ));
    let servers = [Server::start(""), Server::start("")];
    let mut sessions = servers.each_ref().map(Server::bench);
    for (server, session) in servers.iter().zip(&mut sessions) {
        server.enable(false, 1);
        actions::fill(session, ACTIONS);
        each(session, consume::TABLES);
        server.enable(true, 1);
    }
    let mut holder = servers[1].bench();
    holder.batch("BEGIN ISOLATION LEVEL REPEATABLE READ");
    holder.batch("SELECT count(*) FROM recur.timers");
    let mut dispatch = [Samples::default(), Samples::default()];
    let mut claims = [Samples::default(), Samples::default()];
    for round in 0..drains {
        for side in 0..2 {
            let drain = drain_by_workers(&servers[side], &mut sessions[side], ACTIONS);
            dispatch[side].push(drain.per_second);
        }
        progress(&format!(
            "round {round}: {} per s, {} with the snapshot",
            grouped(dispatch[0].0[round as usize]),
            grouped(dispatch[1].0[round as usize])
        ));
    }
    let mut by_hand = [Samples::default(), Samples::default()];
    let everything = Load {
        count: CONSUMED,
        connections: 4,
        batch: 100,
        time: Duration::from_secs(600),
    };
    for side in 0..2 {
        for queue in [Side::OursOnTop, Side::ByHandOnTop] {
            let consumed = queue.measure(&servers[side], &mut sessions[side], everything);
            progress(&format!(
                "{} consumed, {} per s",
                grouped(CONSUMED as f64),
                grouped(consumed.per_second)
            ));
        }
    }
    for _ in 0..5 {
        for side in 0..2 {
            let load = Load::new(size, 4, 10);
            let (server, session) = (&servers[side], &mut sessions[side]);
            let ours = Side::OursOnTop.measure(server, session, load).per_second;
            let theirs = Side::ByHandOnTop.measure(server, session, load).per_second;
            progress(&format!(
                "{} claimed and completed per s, by hand {}",
                grouped(ours),
                grouped(theirs)
            ));
            claims[side].push(ours);
            by_hand[side].push(theirs);
        }
    }
    let mut late = [Samples::default(), Samples::default()];
    let mut ticks = [0.0; 2];
    for side in 0..2 {
        lateness::every_second(&mut sessions[side], 1);
        late[side] = lateness::measure(&servers[side], if size.full { 60 } else { 15 }, 1).ours;
        let waking = idle::measure(&servers[side], &mut sessions[side], 5);
        lateness::no_more_every_second(&mut sessions[side]);
        ticks[side] = waking.micros_per_wake;
        progress(&format!(
            "lateness p50 {:.2} ms, CPU of a wake-up {:.0} µs",
            late[side].median(),
            ticks[side]
        ));
    }
    holder.batch("COMMIT");
    let row = |name: &str, without: &Samples, with: &Samples| {
        vec![
            name.to_owned(),
            without.rate(),
            with.rate(),
            with.over(without).ratio(),
        ]
    };
    let latency = |name: &str, part: f64| {
        let (a, b) = (late[0].quantile(part), late[1].quantile(part));
        vec![name.to_owned(), short(a), short(b), short(b / a)]
    };
    report.table(
        &["", "without", "with an open snapshot", "ratio"],
        &[
            row("dispatches/s, all rounds", &dispatch[0], &dispatch[1]),
            row("claim and complete/s", &claims[0], &claims[1]),
            row("the same by hand", &by_hand[0], &by_hand[1]),
            latency("lateness p50, ms", 0.5),
            latency("lateness p99, ms", 0.99),
            vec![
                "CPU of a wake-up that dispatches one, µs".to_owned(),
                short(ticks[0]),
                short(ticks[1]),
                short(ticks[1] / ticks[0]),
            ],
        ],
    );
}
