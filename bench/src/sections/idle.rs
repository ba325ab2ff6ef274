//! What it costs to wait.

use crate::Size;
use crate::actions;
use crate::measure::{cpu_seconds, grouped, short};
use crate::plot::Plot;
use crate::report::{Report, progress};
use crate::server::Server;
use pg_recur_tests::Session;
use std::time::Duration;

/// How often a process went to sleep.
fn sleeps(pid: i32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
        .and_then(|rest| rest.trim().parse().ok())
        .unwrap_or(f64::NAN)
}

pub struct Idle {
    pub wakes_per_second: f64,
    pub micros_per_wake: f64,
    pub cpu_per_hour: f64,
    pub tick_micros: f64,
    pub tick_buffers: i64,
}

pub fn measure(server: &Server, session: &mut Session, seconds: u64) -> Idle {
    let pid = server.dispatcher_pids()[0];
    let (cpu, slept) = (cpu_seconds(pid), sleeps(pid));
    std::thread::sleep(Duration::from_secs(seconds));
    let (cpu, slept) = (cpu_seconds(pid) - cpu, sleeps(pid) - slept);
    let mut best = f64::INFINITY;
    let mut buffers = 0;
    for _ in 0..20 {
        let plan: serde_json::Value = session.value(
            "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM recur.tick()",
            &[],
        );
        let top = &plan[0]["Plan"];
        best = best.min(top["Actual Total Time"].as_f64().unwrap_or(f64::NAN) * 1000.0);
        buffers = top["Shared Hit Blocks"].as_i64().unwrap_or(0)
            + top["Shared Read Blocks"].as_i64().unwrap_or(0);
    }
    Idle {
        wakes_per_second: slept / seconds as f64,
        micros_per_wake: cpu * 1e6 / slept,
        cpu_per_hour: cpu / seconds as f64 * 3600.0,
        tick_micros: best,
        tick_buffers: buffers,
    }
}

pub fn run(size: Size, report: &mut Report) {
    report.text(
        "A dispatcher with so many actions and nothing due: how often it wakes, what a wake-up takes of its CPU, and that per hour; the
time and the buffers of one `recur.tick()`. `recur.check_interval`, the safety net, is 5 s, its default. Targets: no wake-ups
but the safety net's, under 100 µs each, and the same for any number of actions.",
    );
    let sizes: &[i64] = if size.full {
        &[1_000, 100_000, 1_000_000]
    } else {
        &[1_000, 10_000, 100_000]
    };
    let one = size.actions.map(|count| [count]);
    let sizes = one.as_ref().map_or(sizes, |one| one.as_slice());
    let seconds = if size.full { 120 } else { 15 };
    let server = Server::start("");
    let mut session = server.bench();
    let mut rows = Vec::new();
    let mut line = Vec::new();
    for count in sizes {
        actions::fill(&mut session, *count);
        session.batch("CHECKPOINT");
        progress(&format!(
            "{} actions, waiting {seconds} s",
            grouped(*count as f64)
        ));
        std::thread::sleep(Duration::from_secs(6));
        let idle = measure(&server, &mut session, seconds);
        line.push((*count as f64, idle.micros_per_wake));
        rows.push(vec![
            grouped(*count as f64),
            short(idle.wakes_per_second),
            short(idle.micros_per_wake),
            short(idle.cpu_per_hour),
            short(idle.tick_micros),
            idle.tick_buffers.to_string(),
        ]);
    }
    report.table(
        &[
            "actions",
            "wake-ups/s",
            "CPU µs each",
            "CPU s per hour",
            "tick µs",
            "tick's buffers",
        ],
        &rows,
    );
    report.plot(
        "idle",
        &Plot {
            title: "CPU time of a wake-up with nothing due".to_owned(),
            x: "actions",
            y: "microseconds",
            log_y: false,
            lines: vec![("dispatcher".to_owned(), line)],
        },
    );
}
