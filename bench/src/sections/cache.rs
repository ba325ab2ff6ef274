//! How many schedules a second the engine evaluates, with a warm cache of parsed schedules and with a cold one.

use crate::Size;
use crate::measure::Samples;
use crate::report::Report;
use chrono::{DateTime, TimeDelta, Utc};
use recurrence::{Bounds, OnFold, OnGap, Recurrence, ScheduleCache, Zone};
use std::hint::black_box;
use std::time::Instant;

const ZONES: [&str; 4] = ["UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata"];

fn texts() -> Vec<String> {
    (0..10_000)
        .map(|n| format!("{} {} * * MON-FRI", n % 60, (n / 60) % 24))
        .collect()
}

/// Parses if need be, compiles for its zone and bounds, and asks for the next occurrence: what a dispatch needs.
fn evaluate(
    cache: &mut ScheduleCache,
    text: &str,
    number: usize,
    after: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    let schedule = cache.parse(text).ok()?;
    let zone = Zone::parse(ZONES[number % ZONES.len()]).ok()?;
    let bounds = Bounds {
        starts_at: Some(DateTime::UNIX_EPOCH),
        ends_at: None,
        max_runs: None,
    };
    let recurrence =
        Recurrence::new(schedule, zone, bounds, OnGap::RollForward, OnFold::First).ok()?;
    Some(recurrence.next_after(after)?.at)
}

pub fn run(size: Size, report: &mut Report) {
    let texts = texts();
    let begin = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
    let (mut warm, mut cold) = (Samples::default(), Samples::default());
    let rounds = if size.full { 101 } else { 21 };
    let mut kept = ScheduleCache::new(texts.len());
    for round in 0..=rounds {
        for is_warm in [true, false] {
            let mut fresh = ScheduleCache::new(texts.len());
            let cache = if is_warm { &mut kept } else { &mut fresh };
            let started = Instant::now();
            for (number, text) in texts.iter().enumerate() {
                black_box(evaluate(cache, text, number, begin));
            }
            let rate = texts.len() as f64 / started.elapsed().as_secs_f64();
            if round > 0 {
                if is_warm { &mut warm } else { &mut cold }.push(rate);
            }
        }
    }
    report.text(
        "Schedules a second, one thread: a text is looked up in the cache of parsed schedules, compiled for its zone and
bounds, and asked for its next occurrence. 1,440 distinct texts among 10,000; with a cold cache each of them is parsed
once.",
    );
    report.table(
        &["cache", "schedules/s"],
        &[
            vec!["warm".to_owned(), warm.rate()],
            vec!["cold".to_owned(), cold.rate()],
            vec!["warm / cold".to_owned(), warm.over(&cold).ratio()],
        ],
    );
}
