//! What operators look at: statistics and workers.

use crate::pg::time;
use crate::runtime::{installation, shared, stats};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::iter::TableIterator;
use pgrx::{name, pg_sys, prelude::*};

/// `recur_internal.stats()`.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn stats() -> TableIterator<
    'static,
    (
        name!(since, Option<TimestampWithTimeZone>),
        name!(last_tick, Option<TimestampWithTimeZone>),
        name!(batches, i64),
        name!(failed_batches, i64),
        name!(dispatched, i64),
        name!(skipped, i64),
        name!(ended, i64),
        name!(errors, i64),
        name!(leases_expired, i64),
        name!(lateness_p50, Option<f64>),
        name!(lateness_p99, Option<f64>),
        name!(lateness_max, Option<f64>),
    ),
> {
    let rows = stats::of_this_database().map(|stats| {
        let milliseconds = |micros: i64| micros as f64 / 1000.0;
        let quantile = |part| stats.lateness_quantile(part).map(milliseconds);
        (
            instant(stats.since),
            instant(stats.last_tick),
            stats.batches as i64,
            stats.failed_batches as i64,
            stats.dispatched as i64,
            stats.skipped as i64,
            stats.ended as i64,
            stats.errors as i64,
            stats.leases_expired as i64,
            quantile(0.5),
            quantile(0.99),
            quantile(1.0).map(|_| milliseconds(stats.max_lateness)),
        )
    });
    TableIterator::new(rows.into_iter().collect::<Vec<_>>())
}

/// `recur_internal.workers()`.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn workers() -> TableIterator<
    'static,
    (
        name!(database, pg_sys::Oid),
        name!(kind, &'static str),
        name!(pid, i32),
        name!(state, &'static str),
        name!(state_since, Option<TimestampWithTimeZone>),
        name!(wakes_at, Option<TimestampWithTimeZone>),
    ),
> {
    let workers = match shared::available() {
        true => shared::workers(),
        false => Vec::new(),
    };
    TableIterator::new(workers.into_iter().map(|worker| {
        (
            worker.database,
            worker.kind.name(),
            worker.pid,
            worker.state.name(),
            instant(worker.state_since),
            instant(worker.wakes_at),
        )
    }))
}

/// `recur_internal.is_preloaded()`.
#[pg_extern(sql = false)]
fn is_preloaded() -> bool {
    shared::available()
}

/// `recur_internal.library_version()`.
#[pg_extern(sql = false)]
fn library_version() -> &'static str {
    installation::LIBRARY_VERSION
}

/// None for 0, which stands for an instant that has not come yet.
fn instant(micros: pg_sys::TimestampTz) -> Option<TimestampWithTimeZone> {
    (micros != 0)
        .then(|| time::from_micros(micros).map(time::timestamptz))
        .flatten()
}
