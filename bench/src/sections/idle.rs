//! What it costs to wait.

use crate::Size;
use crate::actions;
use crate::measure::{Samples, cpu_seconds, grouped, short};
use crate::plot::Plot;
use crate::report::{Report, progress};
use crate::server::Server;
use pg_recur_tests::Session;
use std::time::Duration;

/// How often a process went to sleep.
pub fn sleeps(pid: i32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
        .and_then(|rest| rest.trim().parse().ok())
        .unwrap_or(f64::NAN)
}

pub struct Idle {
    pub wakes_per_second: f64,
    pub micros_per_wake: f64,
    /// Of a plain session that is asked for `SELECT 1` as rarely.
    pub floor: f64,
    /// In quick succession, with warm caches.
    pub micros_per_quick_wake: f64,
    pub cpu_per_hour: f64,
    /// Of the launcher.
    pub others_per_hour: f64,
    pub tick_micros: f64,
    pub tick_buffers: i64,
}

pub fn measure(server: &Server, session: &mut Session, seconds: u64) -> Idle {
    let pid = server.dispatcher_pids()[0];
    let others: Vec<i32> = session
        .rows(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_recur launcher'",
            &[],
        )
        .iter()
        .map(|row| row.get(0))
        .collect();
    let of_others = || others.iter().map(|pid| cpu_seconds(*pid)).sum::<f64>();
    let (cpu_before, slept_before, others_before) = (cpu_seconds(pid), sleeps(pid), of_others());
    let mut each = Samples::default();
    let mut last = (cpu_before, slept_before);
    let mut plain = server.bench();
    let nothing = plain.0.prepare("SELECT 1").expect("a plan");
    let plain_pid: i32 = plain.value("SELECT pg_backend_pid()", &[]);
    let mut floor = Samples::default();
    for second in 0..seconds {
        std::thread::sleep(Duration::from_secs(1));
        if second % 5 == 4 {
            let before = cpu_seconds(plain_pid);
            plain.0.query(&nothing, &[]).expect("a row");
            // Until it sleeps again.
            std::thread::sleep(Duration::from_millis(10));
            floor.push((cpu_seconds(plain_pid) - before) * 1e6);
        }
        let now = (cpu_seconds(pid), sleeps(pid));
        if now.1 > last.1 {
            each.push((now.0 - last.0) * 1e6 / (now.1 - last.1));
        }
        last = now;
    }
    let (cpu, slept) = (last.0 - cpu_before, last.1 - slept_before);
    let others = of_others() - others_before;
    let (quick_cpu, quick_slept) = (cpu_seconds(pid), sleeps(pid));
    for _ in 0..1_000 {
        // Workers look around after any DROP: the extension might be gone.
        session.batch("DROP TABLE IF EXISTS pg_temp.nothing");
        // So that it falls asleep in between, and each awakening counts.
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(200));
    let (quick_cpu, quick_slept) = (cpu_seconds(pid) - quick_cpu, sleeps(pid) - quick_slept);
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
        micros_per_wake: each.median(),
        floor: floor.median(),
        micros_per_quick_wake: quick_cpu * 1e6 / quick_slept,
        cpu_per_hour: cpu / seconds as f64 * 3600.0,
        others_per_hour: others / seconds as f64 * 3600.0,
        tick_micros: best,
        tick_buffers: buffers,
    }
}

pub fn run(size: Size, report: &mut Report) {
    report.text(
        "A dispatcher with this many actions and nothing due: how often it wakes, what a wake-up takes of its CPU, and
that per hour. After five seconds of sleep nothing of it is in the CPU's caches any more; so beside it there is what a
plain session takes that is asked for a prepared `SELECT 1` every five seconds, and what each of 1,000 wake-ups in quick
succession takes. The launcher wakes as often: what it takes per hour.
The time and the buffers of one `recur.tick()`. `recur.check_interval`, the safety net, is 5 s, its default.
Targets: no wake-ups but the safety net's, under 100 µs each, and the same for any number of actions.",
    );
    let sizes: &[i64] = if size.full {
        &[1_000, 100_000, 1_000_000]
    } else {
        &[1_000, 10_000, 100_000]
    };
    let sizes = size.actions.unwrap_or(sizes);
    let seconds = if size.full { 60 } else { 15 };
    let server = Server::start("");
    let mut session = server.bench();
    let mut rows = Vec::new();
    let (mut line, mut quick) = (Vec::new(), Vec::new());
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
        quick.push((*count as f64, idle.micros_per_quick_wake));
        rows.push(vec![
            grouped(*count as f64),
            short(idle.wakes_per_second),
            short(idle.micros_per_wake),
            short(idle.floor),
            short(idle.micros_per_quick_wake),
            short(idle.cpu_per_hour),
            short(idle.others_per_hour),
            short(idle.tick_micros),
            idle.tick_buffers.to_string(),
        ]);
    }
    report.table(
        &[
            "actions",
            "wake-ups/s",
            "CPU µs each",
            "`SELECT 1`",
            "in succession",
            "CPU s per hour",
            "the launcher's",
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
            lines: vec![
                ("every five seconds".to_owned(), line),
                ("in quick succession".to_owned(), quick),
            ],
        },
    );
}
