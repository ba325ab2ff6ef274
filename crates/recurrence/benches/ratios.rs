//! The same comparison as `next_after.rs`, as a table of ratios for `bench/RESULTS.md`.
//!
//! `cargo bench -p recurrence --bench ratios`. The implementations take turns in every round, so that
//! other load on the machine affects all of them. The table has the medians of the rounds.

use std::hint::black_box;
use std::time::Instant;

mod implementations;

use implementations::{Implementations, PATTERNS, ZONES, instants};

const ROUNDS: usize = 101;

/// Nanoseconds per search.
fn time<T>(searches: usize, mut round: impl FnMut() -> T) -> f64 {
    let start = Instant::now();
    black_box(round());
    start.elapsed().as_nanos() as f64 / searches as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let instants = instants();
    let searches = instants.len();
    println!(
        "| zone | pattern | ours (ns) | croner (ns) | floor (ns) | croner / ours | ours / floor |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: |");
    for zone in ZONES {
        for pattern in PATTERNS {
            let implementations = Implementations::new(pattern, zone);
            let mut times: [Vec<f64>; 3] = Default::default();
            for _ in 0..ROUNDS {
                times[0].push(time(searches, || {
                    for instant in &instants {
                        black_box(implementations.ours(black_box(*instant)));
                    }
                }));
                times[1].push(time(searches, || {
                    for instant in &instants {
                        black_box(implementations.croner(black_box(*instant)));
                    }
                }));
                times[2].push(time(searches, || {
                    for instant in &instants {
                        black_box(implementations.floor(black_box(*instant)));
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
