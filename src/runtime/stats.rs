//! Counts what the dispatchers and consumers of each database have done since the server started. In shared memory, the
//! counts are cheap to keep and outlive the processes.

use super::histogram::Histogram;
use super::shared;
use crate::pg::{self, time};
use pgrx::prelude::*;
use pgrx::{
    PGRXSharedMemory, PgLwLock, PgXactCallbackEvent, pg_shmem_init, pg_sys, register_xact_callback,
};
use std::cell::RefCell;

const MAX_DATABASES: usize = 128;

// SAFETY: no other extension names a lock like this.
static STATS: PgLwLock<AllStats> = unsafe { PgLwLock::new(c"pg_recur stats") };

#[derive(Clone, Copy)]
struct AllStats([Stats; MAX_DATABASES]);

// SAFETY: plain numbers.
unsafe impl PGRXSharedMemory for AllStats {}

#[derive(Clone, Copy)]
pub struct Stats {
    database: pg_sys::Oid,
    pub since: pg_sys::TimestampTz,
    pub last_tick: pg_sys::TimestampTz,
    pub batches: u64,
    pub failed_batches: u64,
    pub dispatched: u64,
    pub skipped: u64,
    pub ended: u64,
    pub errors: u64,
    pub leases_expired: u64,
    pub interactive: u64,
    pub alarms_raised: u64,
    pub outcomes: Outcomes,
    /// From due to dispatched, or, for a staged dispatch, to announced.
    pub lateness: Histogram,
    /// From claimed to completed, or failed for good.
    pub durations: Histogram,
}

/// What became of attempts.
#[derive(Clone, Copy)]
pub struct Outcomes {
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub retried: u64,
    pub released: u64,
}

impl Stats {
    pub const EMPTY: Stats = Stats {
        database: pg_sys::InvalidOid,
        since: 0,
        last_tick: 0,
        batches: 0,
        failed_batches: 0,
        dispatched: 0,
        skipped: 0,
        ended: 0,
        errors: 0,
        leases_expired: 0,
        interactive: 0,
        alarms_raised: 0,
        outcomes: Outcomes::NONE,
        lateness: Histogram::EMPTY,
        durations: Histogram::EMPTY,
    };

    fn add_lateness(&mut self, lateness: &[Lateness]) {
        for late in lateness {
            self.lateness.add(late.micros, late.dispatches);
        }
    }
}

impl Outcomes {
    const NONE: Outcomes = Outcomes {
        completed: 0,
        failed: 0,
        cancelled: 0,
        retried: 0,
        released: 0,
    };
}

impl Default for AllStats {
    fn default() -> Self {
        AllStats([Stats::EMPTY; MAX_DATABASES])
    }
}

/// Requests the memory. Only while the library is being preloaded.
pub fn request() {
    pg_shmem_init!(STATS);
}

/// The counts of this database. None if the library is not preloaded, or nothing has happened yet.
pub fn of_this_database() -> Option<Stats> {
    if !shared::available() {
        return None;
    }
    let database = pg::my_database();
    let all = STATS.share();
    all.0.iter().find(|one| one.database == database).copied()
}

/// What a batch did.
#[derive(Clone, Copy, Default)]
pub struct BatchCounts {
    pub dispatched: u64,
    pub skipped: u64,
    pub ended: u64,
    pub errors: u64,
}

/// How late a number of dispatches was.
#[derive(Clone, Copy)]
pub struct Lateness {
    pub micros: i64,
    pub dispatches: u64,
}

pub fn count_batch(counts: BatchCounts, lateness: &[Lateness]) {
    update(|stats| {
        stats.batches += 1;
        stats.dispatched += counts.dispatched;
        stats.skipped += counts.skipped;
        stats.ended += counts.ended;
        stats.errors += counts.errors;
        stats.add_lateness(lateness);
        stats.last_tick = time::now_micros();
    });
}

pub fn count_lateness(lateness: &[Lateness]) {
    if !lateness.is_empty() {
        update(|stats| stats.add_lateness(lateness));
    }
}

pub fn count_failed_batch() {
    update(|stats| stats.failed_batches += 1);
}

pub fn count_expired_leases(leases: u64) {
    update(|stats| stats.leases_expired += leases);
}

/// Counts a run that met an interactive state, if this transaction commits.
pub fn count_interactive_on_commit() {
    register_xact_callback(PgXactCallbackEvent::Commit, || {
        update(|stats| stats.interactive += 1);
    });
}

/// What this transaction has done to attempts.
struct Uncommitted {
    is_registered: bool,
    outcomes: Outcomes,
    durations: Histogram,
}

impl Uncommitted {
    const NOTHING: Uncommitted = Uncommitted {
        is_registered: false,
        outcomes: Outcomes::NONE,
        durations: Histogram::EMPTY,
    };
}

thread_local! {
    static UNCOMMITTED: RefCell<Uncommitted> = const { RefCell::new(Uncommitted::NOTHING) };
}

/// Counts what becomes of attempts, and how many microseconds those that are over have taken, if this transaction
/// commits. What a savepoint undoes is counted all the same.
pub fn count_attempts_on_commit(
    count: impl FnOnce(&mut Outcomes),
    durations: impl Iterator<Item = i64>,
) {
    if !shared::available() {
        return;
    }
    UNCOMMITTED.with_borrow_mut(|uncommitted| {
        count(&mut uncommitted.outcomes);
        durations.for_each(|micros| uncommitted.durations.add(micros, 1));
        if !uncommitted.is_registered {
            uncommitted.is_registered = true;
            register_xact_callback(PgXactCallbackEvent::Commit, count_attempts);
            register_xact_callback(PgXactCallbackEvent::Abort, forget_attempts);
            register_xact_callback(PgXactCallbackEvent::Prepare, forget_attempts);
        }
    });
}

fn count_attempts() {
    let done = UNCOMMITTED.replace(Uncommitted::NOTHING);
    update(|stats| {
        let (all, new) = (&mut stats.outcomes, &done.outcomes);
        all.completed += new.completed;
        all.failed += new.failed;
        all.cancelled += new.cancelled;
        all.retried += new.retried;
        all.released += new.released;
        stats.durations.add_all(&done.durations);
    });
}

fn forget_attempts() {
    UNCOMMITTED.set(Uncommitted::NOTHING);
}

pub fn count_alarms(raised: u64) {
    if raised > 0 {
        update(|stats| stats.alarms_raised += raised);
    }
}

fn update(change: impl FnOnce(&mut Stats)) {
    if !shared::available() {
        return;
    }
    let database = pg::my_database();
    let mut all = STATS.exclusive();
    let known = |one: &Stats| one.database == database;
    let place = all.0.iter().position(known).or_else(|| {
        let free = all
            .0
            .iter()
            .position(|one| one.database == pg_sys::InvalidOid)?;
        all.0[free] = Stats {
            database,
            since: time::now_micros(),
            ..Stats::EMPTY
        };
        Some(free)
    });
    // If there are more databases than places, the last ones are not counted.
    if let Some(place) = place {
        change(&mut all.0[place]);
    }
}

/// Frees the place of a database that was dropped.
pub fn forget(database: pg_sys::Oid) {
    let mut all = STATS.exclusive();
    for one in all.0.iter_mut().filter(|one| one.database == database) {
        *one = Stats::EMPTY;
    }
}
