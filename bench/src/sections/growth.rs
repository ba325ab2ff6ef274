//! Does anything grow faster than it should?

use super::consume::{self, Load, Side};
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

pub fn run(size: Size, report: &mut Report) {
    report.text(
        "Microseconds of CPU for each dispatch and for each claim with its report (4 connections, batches of 10), and
the median lateness of one action a second, over three sizes of the table that it works on: actions for the first and
the last, pending dispatches for the second. Flat lines are the aim; nothing may grow faster than the logarithm. (Idle
cost and herds over their sizes have plots of their own.)",
    );
    let sizes: &[i64] = if size.full {
        &[1_000, 100_000, 1_000_000]
    } else {
        &[1_000, 10_000, 50_000]
    };
    let rounds = if size.full { 3 } else { 2 };
    let server = Server::start("");
    let mut session = server.bench();
    each(&mut session, consume::TABLES);
    let mut rows = Vec::new();
    let mut lines = vec![
        ("dispatch".to_owned(), Vec::new()),
        ("claim and complete".to_owned(), Vec::new()),
        ("lateness (not of the CPU)".to_owned(), Vec::new()),
    ];
    for (number, count) in sizes.iter().enumerate() {
        server.enable(false, 1);
        actions::fill(&mut session, *count);
        server.enable(true, 1);
        let (dispatch, consume) = cpu_of_each(&server, &mut session, *count, rounds);
        if number == 0 {
            lateness::every_second(&mut session, 1);
        }
        let late = lateness::measure(&server, if size.full { 30 } else { 10 }, 1).ours;
        progress(&format!(
            "{}: {:.1} µs a dispatch, {:.1} µs a claim, lateness {:.2} ms",
            grouped(*count as f64),
            dispatch.median(),
            consume.median(),
            late.median()
        ));
        lines[0].1.push((*count as f64, dispatch.median()));
        lines[1].1.push((*count as f64, consume.median()));
        lines[2].1.push((*count as f64, late.median() * 1000.0));
        rows.push(vec![
            grouped(*count as f64),
            dispatch.ratio(),
            consume.ratio(),
            short(late.median()),
        ]);
    }
    report.table(
        &[
            "size",
            "dispatch, CPU µs",
            "claim and complete, CPU µs",
            "lateness p50, ms",
        ],
        &rows,
    );
    report.plot(
        "growth",
        &Plot {
            title: "CPU time of each, and median lateness".to_owned(),
            x: "actions, or pending dispatches",
            y: "microseconds",
            log_y: true,
            lines,
        },
    );
}

/// Microseconds of CPU for each dispatch, and for each claim with its report. The first round warms up.
fn cpu_of_each(
    server: &Server,
    session: &mut Session,
    count: i64,
    rounds: usize,
) -> (Samples, Samples) {
    let (mut dispatch, mut consume) = (Samples::default(), Samples::default());
    for round in 0..=rounds {
        let drain = drain_by_workers(server, session, count);
        let load = Load {
            count,
            connections: 4,
            batch: 10,
            time: Duration::from_millis(1_000),
        };
        let consumed = Side::Ours.measure(server, session, load);
        if round > 0 {
            dispatch.push(drain.cpu);
            consume.push(consumed.cpu);
        }
    }
    (dispatch, consume)
}
