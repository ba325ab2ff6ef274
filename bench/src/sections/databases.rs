//! More databases than the server has slots for background workers.

use crate::Size;
use crate::measure::{Samples, short};
use crate::report::{Report, progress};
use crate::server::Server;
use pg_recur_tests::eventually;
use std::collections::HashSet;
use std::time::Duration;

const DATABASES: usize = 20;

/// Milliseconds from the due instant until the dispatch is written: of databases with a process of their own, and of
/// the others.
#[derive(Default)]
struct Lateness {
    dedicated: Samples,
    visited: Samples,
    /// CPU seconds per minute of all processes that came and went.
    visits: f64,
}

fn name(number: usize) -> String {
    format!("d{number}")
}

/// Twenty copies of one database, in which an action runs on this schedule.
fn server(slots: usize, schedule: &str) -> Server {
    let server = Server::plain(&format!(
        "shared_preload_libraries = 'pg_recur'\nmax_worker_processes = {slots}"
    ));
    server.session("postgres").batch("CREATE DATABASE d1");
    let mut first = server.session(&name(1));
    first.batch("CREATE EXTENSION pg_recur");
    first.execute(
        "SELECT recur.create('bench', $1, 'bench', 'noop')",
        &[&schedule],
    );
    drop(first);
    let mut admin = server.session("postgres");
    for number in 2..=DATABASES {
        admin.batch(&format!("CREATE DATABASE {} TEMPLATE d1", name(number)));
        // A copy holds its fire until it is armed.
        server.session(&name(number)).batch("SELECT recur.arm()");
    }
    server
}

/// CPU time of the children of the postmaster that have ended.
fn cpu_of_ended(server: &Server) -> f64 {
    let pid_file = server.cluster.data().join("postmaster.pid");
    let pid = std::fs::read_to_string(pid_file).unwrap_or_default();
    let pid = pid.lines().next().unwrap_or_default();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind_name = stat.rsplit(") ").next().unwrap_or_default();
    // cutime and cstime, in hundredths of a second.
    let fields = behind_name.split(' ').skip(13).take(2);
    fields
        .filter_map(|field| field.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

fn measure(slots: usize, schedule: &str, seconds: u64) -> Lateness {
    let server = server(slots, schedule);
    let mut sessions: Vec<_> = (1..=DATABASES)
        .map(|number| server.session(&name(number)))
        .collect();
    for session in &mut sessions {
        eventually("it fires", || session.count("recur.dispatches") > 0);
    }
    let begin: chrono::DateTime<chrono::Utc> = sessions[0].value("SELECT clock_timestamp()", &[]);
    let cpu = cpu_of_ended(&server);
    std::thread::sleep(Duration::from_secs(seconds));
    let mut lateness = Lateness {
        visits: (cpu_of_ended(&server) - cpu) * 60.0 / seconds as f64,
        ..Lateness::default()
    };
    let dedicated: Vec<String> = sessions[0].column(
        "SELECT database::text FROM recur.workers WHERE kind = 'dispatcher'",
        &[],
    );
    let dedicated: HashSet<String> = dedicated.into_iter().collect();
    for (number, session) in sessions.iter_mut().enumerate() {
        let late: Vec<f64> = session.column(
            "SELECT greatest(0, extract(epoch FROM created_at - scheduled_at) * 1000)::float8
               FROM recur.dispatches WHERE scheduled_at > $1 AND scheduled_at < clock_timestamp() - interval '2 s'",
            &[&begin],
        );
        let samples = match dedicated.contains(&name(number + 1)) {
            true => &mut lateness.dedicated,
            false => &mut lateness.visited,
        };
        samples.0.extend(late);
    }
    lateness
}

fn row(name: &str, samples: &Samples, visits: &str) -> Vec<String> {
    let mut cells = vec![name.to_owned()];
    let shown = [0.5, 0.99, 1.0].map(|part| short(samples.quantile(part)));
    cells.extend(shown);
    cells.push(visits.to_owned());
    cells
}

pub fn run(size: Size, report: &mut Report) {
    report.text(
        "Twenty databases on a server with the default of 8 slots for background workers, four of which pg_recur takes:
three databases have a process of their own, and one process visits the others. In each database one action is due, in
all at the same instant. Milliseconds from that instant until the dispatch is written, beside the same with slots for
all, and the CPU seconds per minute of the processes that come and go. Target: at most 60 s late, and as exact as ever
where a database has a process of its own.",
    );
    let seconds = if size.full { 300 } else { 60 };
    let mut rows = Vec::new();
    for (what, schedule) in [
        ("every 10 s", "*/10 * * * * *"),
        ("every second", "* * * * * *"),
    ] {
        for slots in [8, 32] {
            progress(&format!("{what}, {slots} slots, {seconds} s"));
            let lateness = measure(slots, schedule, seconds);
            let visits = short(lateness.visits);
            let name = |kind: &str| format!("{what}, {slots} slots: {kind}");
            rows.push(row(&name("own process"), &lateness.dedicated, ""));
            if slots == 8 {
                rows.push(row(&name("visited"), &lateness.visited, &visits));
            }
        }
    }
    report.table(
        &["databases", "p50 ms", "p99 ms", "max ms", "CPU s/min"],
        &rows,
    );
}
