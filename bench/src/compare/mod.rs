//! Compares this build with another one, operation by operation.
//!
//!     pg_recur-bench compare --with=BINDIR [--rounds=N]
//!
//! Rounds of the two builds take turns. Each round is a process of its own with a server of its own; `BINDIR` has the
//! programs of the PostgreSQL that the other build is installed into (scripts/compare.sh makes one of any revision).

mod round;

use crate::measure::{Samples, short};
use crate::report::{Report, progress};
use round::Figures;
use std::process::Command;

/// The argument of the child that measures one round.
pub const ROUND: &str = "compare-round";

pub fn print_round() {
    println!("{}", serde_json::to_string(&round::run()).expect("JSON"));
}

pub fn run(other: &str, rounds: usize, report: &mut Report) {
    let this = std::env::var("PG_RECUR_BIN").expect("PG_RECUR_BIN");
    let mut sides: [Vec<Figures>; 2] = Default::default();
    for number in 0..2 * rounds {
        // The first of a pair is now one side, now the other: what drifts falls on both.
        let side = (number + number / 2) % 2;
        progress(&format!(
            "pair {} of {rounds}, {}",
            number / 2 + 1,
            ["before", "after"][side]
        ));
        sides[side].push(child(if side == 0 { other } else { &this }));
    }
    report.text(&format!(
        "This build over an earlier one, {rounds} pairs that took turns in one run; medians, and the median of the
pairs' ratios with its quartiles. CPU time is that of the server process that does the work, divided by the number of
dispatches or actions."
    ));
    let names: Vec<String> = sides[0][0].keys().cloned().collect();
    let rows: Vec<Vec<String>> = names
        .iter()
        .map(|name| {
            let [before, after] = [0, 1].map(|side: usize| {
                Samples(sides[side].iter().map(|figures| figures[name]).collect())
            });
            let ratios = after.over(&before);
            let quartiles = [0.25, 0.75].map(|part| short(ratios.quantile(part)));
            vec![
                name[2..].to_owned(),
                short(before.median()),
                short(after.median()),
                format!(
                    "{} ({}–{})",
                    short(ratios.median()),
                    quartiles[0],
                    quartiles[1]
                ),
            ]
        })
        .collect();
    report.table(&["operation", "before", "after", "ratio"], &rows);
}

fn child(bin: &str) -> Figures {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program)
        .arg(ROUND)
        .env("PG_RECUR_BIN", bin)
        .output()
        .expect("a round");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(text.trim()).unwrap_or_else(|error| {
        panic!(
            "{error}: {text} {}",
            String::from_utf8_lossy(&output.stderr)
        )
    })
}
