//! Measures pg_recur beside what it competes with, and writes `bench/RESULTS.md`.
//!
//!     pg_recur-bench [--full] [--actions=N,…] [--finished=N] [SECTION …]
//!     pg_recur-bench compare --with=BINDIR [--rounds=N]
//!
//! Every figure is a ratio of two sides that took turns in one run; a section replaces its own part of the results.

mod actions;
mod compare;
mod limit;
mod measure;
mod plot;
mod report;
mod sections;
mod server;

use report::Report;

/// How large a run is.
#[derive(Clone, Copy)]
pub struct Size {
    pub full: bool,
    /// These numbers of actions instead of the section's own.
    pub actions: Option<&'static [i64]>,
    /// So many finished dispatches, where there is a history. A million takes 0.7 GB.
    pub finished: Option<i64>,
}

type Section = fn(Size, &mut Report);

const SECTIONS: [(&str, &str, Section); 12] = [
    ("engine", "Engine", sections::engine::run),
    ("cache", "Schedule cache", sections::cache::run),
    (
        "throughput",
        "Dispatch throughput",
        sections::throughput::run,
    ),
    ("lateness", "Lateness", sections::lateness::run),
    ("herds", "Herds", sections::herds::run),
    ("idle", "Idle cost", sections::idle::run),
    ("databases", "Many databases", sections::databases::run),
    ("consume", "Consumer throughput", sections::consume::run),
    ("sql", "SQL actions", sections::sql::run),
    ("history", "History does not hurt", sections::history::run),
    ("snapshot", "A held snapshot", sections::snapshot::run),
    ("growth", "Growth", sections::growth::run),
];

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some(compare::ROUND) => compare::print_round(),
        Some("compare") => compare_builds(),
        _ => run_sections(),
    }
}

fn compare_builds() {
    let option = |name: &str| {
        let given = std::env::args().find_map(|one| Some(one.strip_prefix(name)?.to_owned()));
        given.filter(|value| !value.is_empty())
    };
    let Some(other) = option("--with=") else {
        eprintln!(
            "compare needs --with=BINDIR, the programs of the PostgreSQL that the other build is installed into"
        );
        std::process::exit(2);
    };
    let rounds = option("--rounds=").and_then(|rounds| rounds.parse().ok());
    let started = std::time::Instant::now();
    let mut report = Report::new("compare", "Compared with an earlier build", false);
    compare::run(&other, rounds.unwrap_or(15), &mut report);
    report.write(started.elapsed());
}

fn run_sections() {
    let mut size = Size {
        full: false,
        actions: None,
        finished: None,
    };
    let mut wanted = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--full" => size.full = true,
            option if option.starts_with("--actions=") => {
                let numbers = option["--actions=".len()..].split(',');
                let numbers: Vec<i64> = numbers.filter_map(|text| text.parse().ok()).collect();
                size.actions = Some(numbers.leak());
            }
            option if option.starts_with("--finished=") => {
                size.finished = option["--finished=".len()..].parse().ok();
            }
            name if SECTIONS.iter().any(|(known, _, _)| *known == name) => wanted.push(argument),
            name => {
                let known: Vec<_> = SECTIONS.iter().map(|(name, _, _)| *name).collect();
                eprintln!(
                    "unknown section \"{name}\"; there are: {}",
                    known.join(", ")
                );
                std::process::exit(2);
            }
        }
    }
    for (name, title, section) in SECTIONS {
        if !wanted.is_empty() && !wanted.iter().any(|one| one == name) {
            continue;
        }
        report::progress(&format!("== {title}"));
        let started = std::time::Instant::now();
        let mut report = Report::new(name, title, size.full);
        section(size, &mut report);
        report.write(started.elapsed());
    }
}
