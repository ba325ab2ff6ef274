//! The same race as `next_after.rs`, as a table of ratios for `bench/RESULTS.md`.
//!
//! `cargo bench -p recurrence --bench ratios`. The contestants take turns in every round, so that
//! whatever else the machine does falls on all of them; medians of the rounds are compared.

use std::hint::black_box;
use std::time::Instant;

mod contestants;

use contestants::{Contestants, PATTERNS, ZONES, instants};

const ROUNDS: usize = 101;

/// Nanoseconds for each question.
fn time<T>(questions: usize, mut round: impl FnMut() -> T) -> f64 {
    let start = Instant::now();
    black_box(round());
    start.elapsed().as_nanos() as f64 / questions as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let instants = instants();
    let questions = instants.len();
    println!(
        "| zone | pattern | ours (ns) | croner (ns) | floor (ns) | croner / ours | ours / floor |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: |");
    for zone in ZONES {
        for pattern in PATTERNS {
            let contestants = Contestants::new(pattern, zone);
            let mut times: [Vec<f64>; 3] = Default::default();
            for _ in 0..ROUNDS {
                times[0].push(time(questions, || {
                    for instant in &instants {
                        black_box(contestants.ours(black_box(*instant)));
                    }
                }));
                times[1].push(time(questions, || {
                    for instant in &instants {
                        black_box(contestants.croner(black_box(*instant)));
                    }
                }));
                times[2].push(time(questions, || {
                    for instant in &instants {
                        black_box(contestants.floor(black_box(*instant)));
                    }
                }));
            }
            let [ours, croner, floor] = times.map(median);
            println!(
                "| {zone} | `{pattern}` | {ours:.0} | {croner:.0} | {floor:.0} | {:.1} | {:.2} |",
                croner / ours,
                ours / floor
            );
        }
    }
}
