//! Random calls of the public API by three roles, compared after each call with a simple model in memory.
//!
//! A run depends on its seed alone. It takes some seconds; `PG_RECUR_MODEL_SECONDS=3600` makes it longer, and
//! `PG_RECUR_MODEL_SEED=…` repeats a run, with the seed that a failure printed.

mod calls;
mod claims;
mod driver;
mod world;

use driver::Driver;
use std::time::{Duration, Instant};

/// How many calls a world sees before a new one begins: long histories make the comparison slow.
const CALLS_PER_WORLD: usize = 200;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn random_calls_do_what_the_model_does() {
    let seconds = number("PG_RECUR_MODEL_SECONDS");
    let first = number("PG_RECUR_MODEL_SEED").unwrap_or(1);
    let begun = Instant::now();
    for seed in first.. {
        println!("PG_RECUR_MODEL_SEED={seed}");
        let mut driver = Driver::new(seed);
        for _ in 0..CALLS_PER_WORLD {
            driver.call();
            driver.compare();
        }
        let is_over = seconds.is_none_or(|seconds| begun.elapsed() > Duration::from_secs(seconds));
        if is_over && seed > first {
            println!("{} worlds of {CALLS_PER_WORLD} calls", seed - first + 1);
            return;
        }
    }
}
