//! The engine alone: the race that its own crate runs, against croner and against a bare search.

use crate::Size;
use crate::report::{Report, progress};
use std::process::Command;

/// The rows of the Markdown table that the race prints.
fn race() -> Option<Vec<Vec<String>>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["bench", "--quiet", "-p", "recurrence", "--bench", "ratios"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .ok()?;
    if !output.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = text.lines().filter_map(|line| {
        let cells = line.trim().strip_prefix('|')?.strip_suffix('|')?;
        Some(
            cells
                .split('|')
                .map(|cell| cell.trim().to_owned())
                .collect(),
        )
    });
    // Without its headings and the marks below them.
    Some(rows.skip(2).collect())
}

pub fn run(_: Size, report: &mut Report) {
    progress("building and running the engine's own benchmark");
    let Some(rows) = race() else {
        report.text("It could not be built: not measured.");
        return;
    };
    let column =
        |number: usize| move |row: &Vec<String>| row.get(number)?.trim().parse::<f64>().ok();
    let least = rows
        .iter()
        .filter_map(column(5))
        .fold(f64::INFINITY, f64::min);
    let most = rows.iter().filter_map(column(6)).fold(0.0, f64::max);
    report.text(&format!(
        "`cargo bench -p recurrence --bench ratios`: the next occurrence after each of 1,000 instants spread over ten
years, one schedule at a time. Three contestants take turns within every one of 101 rounds, so that whatever else the
machine does falls on all of them; the table holds medians of the rounds. (`--bench next_after` is the same race under
criterion.)

- ours: `Recurrence::next_after`, with bounds, clock-change policy and the local time of the answer;
- croner: `find_next_occurrence` of croner 4.0.2;
- floor: a bare search on bit sets, with a binary search for the offset, no bounds, no care for clock changes.

Targets: at least 5 times faster than croner and within 3 times of the floor, on every row. Here: at least {least:.1}
times faster, and at most {most:.2} times the floor (less than 1 where our zone look-up beats the floor's binary
search). Nothing is allocated in `next_after`, `previous_or_at` and `count_between` of cron expressions, intervals and
structured rules (`crates/recurrence/tests/allocation.rs`)."
    ));
    report.table(
        &[
            "zone",
            "pattern",
            "ours (ns)",
            "croner (ns)",
            "floor (ns)",
            "croner / ours",
            "ours / floor",
        ],
        &rows,
    );
}
