//! What has been counted since the server started, for `recur.metrics`.

use crate::runtime::histogram::Histogram;
use crate::runtime::stats::{self, Stats};
use pgrx::iter::TableIterator;
use pgrx::{name, prelude::*};

/// The ends of the buckets: every fourth power of two of microseconds, from a millisecond to an hour. Between them the
/// counts are kept finer, but each bucket is a series of its own.
const BUCKET_ENDS: [usize; 12] = [10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32];

/// (name, kind, help, end of the bucket, value)
type Sample = (
    &'static str,
    &'static str,
    &'static str,
    Option<String>,
    f64,
);

/// `recur_internal.counted()`.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn counted() -> TableIterator<
    'static,
    (
        name!(name, &'static str),
        name!(kind, &'static str),
        name!(help, &'static str),
        name!(le, Option<String>),
        name!(value, f64),
    ),
> {
    let stats = stats::of_this_database().unwrap_or(Stats::EMPTY);
    let mut samples: Vec<Sample> = counters(&stats).to_vec();
    samples.extend(histogram(
        [
            "recur_lateness_seconds_bucket",
            "recur_lateness_seconds_sum",
            "recur_lateness_seconds_count",
        ],
        "The time from due to dispatched, or, for a staged dispatch, to announced",
        &stats.lateness,
    ));
    samples.extend(histogram(
        [
            "recur_run_duration_seconds_bucket",
            "recur_run_duration_seconds_sum",
            "recur_run_duration_seconds_count",
        ],
        "The time from the last claim of a dispatch to its completion, or to its final failure",
        &stats.durations,
    ));
    TableIterator::new(samples)
}

fn counters(stats: &Stats) -> [Sample; 13] {
    let outcomes = &stats.outcomes;
    [
        (
            "recur_dispatched_total",
            "Dispatches of schedules",
            stats.dispatched,
        ),
        (
            "recur_skipped_total",
            "Occurrences that did not fire",
            stats.skipped,
        ),
        (
            "recur_completed_total",
            "Dispatches that were completed",
            outcomes.completed,
        ),
        (
            "recur_failed_total",
            "Dispatches that have failed for good",
            outcomes.failed,
        ),
        (
            "recur_cancelled_total",
            "Dispatches that were cancelled",
            outcomes.cancelled,
        ),
        (
            "recur_retried_total",
            "Attempts that failed and are followed by another one",
            outcomes.retried,
        ),
        (
            "recur_released_total",
            "Attempts that consumers gave back undone",
            outcomes.released,
        ),
        (
            "recur_leases_expired_total",
            "Dispatches that were taken from consumers that did not report",
            stats.leases_expired,
        ),
        (
            "recur_actions_ended_total",
            "Actions that have ended",
            stats.ended,
        ),
        (
            "recur_dispatch_errors_total",
            "Actions that could not be dispatched, counted at each try",
            stats.errors,
        ),
        (
            "recur_batches_total",
            "Batches of dispatchers that had anything to do",
            stats.batches,
        ),
        (
            "recur_failed_batches_total",
            "Batches of dispatchers that had to be repeated",
            stats.failed_batches,
        ),
        (
            "recur_alarms_raised_total",
            "Alarms of actions that were raised",
            stats.alarms_raised,
        ),
    ]
    .map(|(name, help, count)| (name, "counter", help, None, count as f64))
}

fn histogram(names: [&'static str; 3], help: &'static str, counts: &Histogram) -> Vec<Sample> {
    let [bucket, sum, count] = names;
    let sample = |name, le, value| (name, "histogram", help, le, value);
    let all = counts.count() as f64;
    let mut samples: Vec<Sample> = BUCKET_ENDS
        .iter()
        .map(|doublings| {
            let end = (1u64 << doublings) as f64 / 1e6;
            let below = counts.count_below(*doublings) as f64;
            sample(bucket, Some(end.to_string()), below)
        })
        .collect();
    samples.extend([
        sample(bucket, Some("+Inf".to_owned()), all),
        sample(sum, None, counts.sum_micros() as f64 / 1e6),
        sample(count, None, all),
    ]);
    samples
}
