//! `next_after` compared with croner's search and with a bare search on bit sets; parsing and admission.
//!
//! `cargo bench -p recurrence --bench next_after`. For ratios see `ratios.rs`.

use std::hint::black_box;
use std::str::FromStr;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use croner::Cron;
use recurrence::Schedule;

mod implementations;

use implementations::{Implementations, PATTERNS, ZONES, instants};

fn next_after(criterion: &mut Criterion) {
    let instants = instants();
    for zone in ZONES {
        let mut group = criterion.benchmark_group(zone.replace('/', "_"));
        for pattern in PATTERNS {
            let implementations = Implementations::new(pattern, zone);
            let mut index = 0;
            let mut next = || {
                index = (index + 1) % instants.len();
                black_box(instants[index])
            };
            group.bench_function(BenchmarkId::new("ours", pattern), |b| {
                b.iter(|| implementations.ours(next()));
            });
            group.bench_function(BenchmarkId::new("croner", pattern), |b| {
                b.iter(|| implementations.croner(next()));
            });
            group.bench_function(BenchmarkId::new("floor", pattern), |b| {
                b.iter(|| implementations.floor(next()));
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

/// The cost of storing a text: canonical, in another spelling, every second, misread by croner, and
/// with the rarest dates.
fn admit(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("admit");
    for pattern in [
        "0 9 * * MON-FRI",
        "0 9 * * 1-5",
        "* * * * * *",
        "0 0 0 1 1 * */4,6000",
        "0 0 29 2 +SUN",
    ] {
        group.bench_function(pattern, |b| {
            b.iter(|| Schedule::admit(black_box(pattern)));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .without_plots()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(400));
    targets = next_after, parse, admit
}
criterion_main!(benches);
