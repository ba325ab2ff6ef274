//! What operators look at: statistics and workers.

use crate::pg::{self, catalog, identity, time};
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
        name!(interactive, i64),
        name!(alarms_raised, i64),
        name!(lateness_p50, Option<f64>),
        name!(lateness_p99, Option<f64>),
        name!(lateness_max, Option<f64>),
    ),
> {
    let rows = stats::of_this_database().map(|stats| {
        let milliseconds = |micros: i64| micros as f64 / 1000.0;
        let quantile = |part| stats.lateness.quantile(part).map(milliseconds);
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
            stats.interactive as i64,
            stats.alarms_raised as i64,
            quantile(0.5),
            quantile(0.99),
            quantile(1.0).map(|_| milliseconds(stats.lateness.max)),
        )
    });
    TableIterator::new(rows.into_iter().collect::<Vec<_>>())
}

/// `recur_internal.workers()`: those of this database; a member of pg_monitor sees those of all databases. The view
/// calls it as the role that reads the view, so that the role can call it by itself, too.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn workers() -> TableIterator<
    'static,
    (
        name!(database, pg_sys::Oid),
        name!(kind, &'static str),
        name!(pid, Option<i32>),
        name!(state, &'static str),
        name!(state_since, Option<TimestampWithTimeZone>),
        name!(wakes_at, Option<TimestampWithTimeZone>),
    ),
> {
    let workers = match shared::available() {
        true => shared::workers(),
        false => Vec::new(),
    };
    let sees_all = catalog::role(c"pg_monitor")
        .is_some_and(|monitor| identity::has_rights_of(identity::current_role(), monitor));
    let executing = match shared::available() {
        true => shared::executors::executors(),
        false => Vec::new(),
    };
    let executing = executing.into_iter().map(|one| shared::WorkerInfo {
        database: one.post.database,
        kind: "executor",
        pid: one.pid,
        state: match (one.pid, one.is_idle) {
            (None, _) => "starting",
            (_, true) => "idle",
            (_, false) => "working",
        },
        state_since: Some(match one.is_idle {
            true => one.since,
            false => one.began_at,
        }),
        wakes_at: shared::NEVER,
    });
    let seen = workers
        .into_iter()
        .chain(executing)
        .filter(move |worker| sees_all || worker.database == pg::my_database());
    TableIterator::new(seen.map(|worker| {
        (
            worker.database,
            worker.kind,
            worker.pid,
            worker.state,
            worker.state_since.and_then(instant),
            instant(worker.wakes_at),
        )
    }))
}

/// `recur_internal.missing_workers()`.
#[pg_extern(sql = false)]
fn missing_workers() -> TableIterator<
    'static,
    (
        name!(databases, i32),
        name!(processes, i32),
        name!(max_worker_processes, i32),
    ),
> {
    let missing = shared::available().then(shared::missing);
    let missing = missing.filter(|missing| missing.databases > 0);
    TableIterator::new(missing.into_iter().map(|missing| {
        (
            missing.databases,
            missing.processes,
            missing.max_worker_processes,
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
