//! `next_after` against croner's own search and against a bare search on bit sets.
//!
//! `cargo bench -p recurrence`. All three answer the same questions: the next occurrence after one
//! of a thousand instants spread over ten years.

use std::hint::black_box;
use std::str::FromStr;
use std::sync::Arc;

use chrono::{DateTime, Duration, TimeZone, Utc};
use chrono_tz::Tz;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use croner::Cron;
use croner::parser::{CronParser, Seconds};
use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Zone};

mod floor;

use floor::BareSearch;

const PATTERNS: [&str; 12] = [
    "* * * * *",
    "*/5 * * * *",
    "*/10 * * * * *",
    "0 * * * *",
    "30 2 * * *",
    "0 9 * * MON-FRI",
    "0 12 * * 5#2",
    "0 0 L * *",
    "0 0 1 * *",
    "0 0 1 1 *",
    "0 0 13 * +FRI",
    "0 0 29 2 *",
];
const ZONES: [&str; 2] = ["UTC", "America/New_York"];

fn instants() -> Vec<DateTime<Utc>> {
    // Steps that share nothing with minutes, hours or days.
    let start = DateTime::from_str("2024-01-01T00:00:00Z").expect("an instant");
    (0..1000)
        .map(|i| start + Duration::seconds(i * 315_361))
        .collect()
}

fn next_after(criterion: &mut Criterion) {
    let instants = instants();
    for zone in ZONES {
        let mut group = criterion.benchmark_group(zone.replace('/', "_"));
        let tz = Tz::from_str(zone).expect("a zone");
        for pattern in PATTERNS {
            let recurrence = Recurrence::new(
                Arc::new(Schedule::parse(pattern).expect("a schedule")),
                Zone::parse(zone).expect("a zone"),
                Bounds::default(),
                OnGap::RollForward,
                OnFold::First,
            )
            .expect("a recurrence");
            let cron: Cron = CronParser::builder()
                .seconds(Seconds::Optional)
                .build()
                .parse(pattern)
                .expect("a pattern");
            let bare = BareSearch::new(&cron, tz);
            for instant in &instants {
                let expected = recurrence.next_after(*instant).map(|o| o.at.timestamp());
                let found = bare.next_after(instant.timestamp());
                // Within a day of a clock change the floor may be off.
                let difference = expected.unwrap_or(0) - found.unwrap_or(0);
                assert!(difference.abs() <= 3600, "{pattern} after {instant}");
            }

            let mut index = 0;
            let mut next = || {
                index = (index + 1) % instants.len();
                instants[index]
            };
            group.bench_function(BenchmarkId::new("ours", pattern), |b| {
                b.iter(|| recurrence.next_after(black_box(next())));
            });
            group.bench_function(BenchmarkId::new("croner", pattern), |b| {
                b.iter(|| {
                    let local = tz.from_utc_datetime(&black_box(next()).naive_utc());
                    cron.find_next_occurrence(&local, false)
                });
            });
            group.bench_function(BenchmarkId::new("floor", pattern), |b| {
                b.iter(|| bare.next_after(black_box(next().timestamp())));
            });
        }
        group.finish();
    }
}

fn parse(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse");
    for pattern in ["0 9 * * MON-FRI", "0 0 29 2 *"] {
        group.bench_function(BenchmarkId::new("ours", pattern), |b| {
            b.iter(|| Schedule::parse(black_box(pattern)));
        });
        group.bench_function(BenchmarkId::new("croner", pattern), |b| {
            b.iter(|| Cron::from_str(black_box(pattern)));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .without_plots()
        .sample_size(30)
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_millis(400));
    targets = next_after, parse
}
criterion_main!(benches);
