//! Counts what the dispatchers of each database have done since the server started. In shared memory, the counts are
//! cheap to keep and outlive the workers.

use super::shared;
use crate::pg::{self, time};
use pgrx::prelude::*;
use pgrx::{
    PGRXSharedMemory, PgLwLock, PgXactCallbackEvent, pg_shmem_init, pg_sys, register_xact_callback,
};

const MAX_DATABASES: usize = 128;
/// Four buckets for each doubling of the microseconds: a quantile is right to a fifth. The last one begins at 71
/// minutes.
const BUCKETS: usize = 4 * 32 + 1;

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
    pub max_lateness: i64,
    lateness: [u64; BUCKETS],
}

impl Stats {
    const EMPTY: Stats = Stats {
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
        max_lateness: 0,
        lateness: [0; BUCKETS],
    };

    fn add_lateness(&mut self, lateness: &[Lateness]) {
        for late in lateness {
            self.lateness[bucket_of(late.micros)] += late.dispatches;
            self.max_lateness = self.max_lateness.max(late.micros);
        }
    }

    /// The lateness, in microseconds, that this part of the dispatches did not exceed.
    pub fn lateness_quantile(&self, part: f64) -> Option<i64> {
        let all: u64 = self.lateness.iter().sum();
        let rank = (all as f64 * part).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.lateness.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(upper_end(bucket).min(self.max_lateness));
            }
        }
        None
    }
}

impl Default for AllStats {
    fn default() -> Self {
        AllStats([Stats::EMPTY; MAX_DATABASES])
    }
}

fn bucket_of(micros: i64) -> usize {
    let micros = micros.max(1) as u64;
    let doublings = micros.ilog2();
    // The two bits below the leading one.
    let quarter = match doublings {
        0 => 0,
        1 => (micros & 1) << 1,
        _ => (micros >> (doublings - 2)) & 3,
    };
    (doublings as usize * 4 + quarter as usize).min(BUCKETS - 1)
}

fn upper_end(bucket: usize) -> i64 {
    let (doublings, quarter) = (bucket / 4, bucket % 4);
    ((1i64 << doublings) * (5 + quarter as i64)) / 4
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
