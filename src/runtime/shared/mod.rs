//! Shared memory: where workers and sessions meet.
//!
//! Each worker enters its process and its latch; sessions set the latch, and leave requests for the launcher. One lock
//! guards all of it, and is held for a few loads and stores only.

mod databases;
mod demand;
pub mod executors;
mod proven;
mod slots;

pub use databases::*;
pub use demand::WaitsFor;
pub use slots::*;

use crate::pg::latch::LatchRef;
use crate::pg::time;
use pgrx::prelude::*;
use pgrx::{PGRXSharedMemory, PgLwLock, pg_shmem_init, pg_sys};
use std::sync::atomic::{AtomicBool, Ordering};

const MAX_REQUESTS: usize = 32;
const MAX_VACATED: usize = 16;
/// If the session that vacated a database dies before it ends its transaction, the workers return after this time.
const VACATED_AT_MOST_MICROS: i64 = 10_000_000;

// SAFETY: no other extension names a lock like this.
static SHARED: PgLwLock<SharedState> = unsafe { PgLwLock::new(c"pg_recur shared state") };
/// Set in the postmaster and inherited by every process that it starts.
static AVAILABLE: AtomicBool = AtomicBool::new(false);

#[derive(Clone, Copy)]
struct SharedState {
    launcher: LatchRef,
    workers: [WorkerSlot; MAX_WORKERS],
    databases: [DatabaseEntry; MAX_DATABASES],
    database_count: usize,
    /// How many worker processes pg_recur lacks, as the launcher sees it.
    missing: Missing,
    /// Numbers the reservations of slots.
    last_reservation: usize,
    /// Databases in which the extension may have appeared.
    requests: [pg_sys::Oid; MAX_REQUESTS],
    request_count: usize,
    /// There were more requests than fit: look in every database.
    look_everywhere: bool,
    /// Databases that a command needs without other connections for a moment.
    vacated: [Vacated; MAX_VACATED],
}

// SAFETY: plain values without pointers, except for latches, which have the same address in every process.
unsafe impl PGRXSharedMemory for SharedState {}

/// What a dispatcher has to look at again: collected since its last turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// The earliest instant that a timer was set to.
    pub due_at: Option<pg_sys::TimestampTz>,
    /// The earliest instant at which a dispatch becomes available that was not when it was written.
    pub available_at: Option<pg_sys::TimestampTz>,
    /// There may be something to run in the database itself, or to stop.
    pub has_work: bool,
}

impl Wakeup {
    pub const NOTHING: Wakeup = Wakeup {
        due_at: None,
        available_at: None,
        has_work: false,
    };
    pub const EVERYTHING: Wakeup = Wakeup {
        due_at: Some(pg_sys::TimestampTz::MIN),
        available_at: Some(pg_sys::TimestampTz::MIN),
        has_work: true,
    };

    pub fn add(&mut self, other: Wakeup) {
        let earlier = |a: Option<pg_sys::TimestampTz>, b| a.into_iter().chain(b).min();
        self.due_at = earlier(self.due_at, other.due_at);
        self.available_at = earlier(self.available_at, other.available_at);
        self.has_work |= other.has_work;
    }

    fn earliest(self) -> Option<pg_sys::TimestampTz> {
        let work = self.has_work.then_some(pg_sys::TimestampTz::MIN);
        let instants = self.due_at.into_iter().chain(self.available_at);
        instants.chain(work).min()
    }
}

#[derive(Clone, Copy)]
struct Vacated {
    database: pg_sys::Oid,
    until: pg_sys::TimestampTz,
}

impl Default for SharedState {
    fn default() -> Self {
        SharedState {
            launcher: LatchRef::NONE,
            workers: [WorkerSlot::FREE; MAX_WORKERS],
            databases: [DatabaseEntry::NONE; MAX_DATABASES],
            database_count: 0,
            missing: Missing::default(),
            last_reservation: 0,
            requests: [pg_sys::InvalidOid; MAX_REQUESTS],
            request_count: 0,
            look_everywhere: false,
            vacated: [Vacated::NONE; MAX_VACATED],
        }
    }
}

impl Vacated {
    const NONE: Vacated = Vacated {
        database: pg_sys::InvalidOid,
        until: 0,
    };
}

/// Requests the memory. Only while the library is being preloaded.
pub fn request() {
    pg_shmem_init!(SHARED);
    executors::request();
    AVAILABLE.store(true, Ordering::Relaxed);
}

/// Was the library preloaded? If not, there are neither workers nor shared memory.
pub fn available() -> bool {
    AVAILABLE.load(Ordering::Relaxed)
}

// What the launcher does.

pub fn register_launcher() {
    SHARED.exclusive().launcher = LatchRef::mine();
}

/// What sessions have requested since the launcher last looked.
pub struct Requests {
    pub databases: Vec<pg_sys::Oid>,
    pub everywhere: bool,
}

pub fn take_requests() -> Requests {
    let mut shared = SHARED.exclusive();
    let databases = shared.requests[..shared.request_count].to_vec();
    let everywhere = shared.look_everywhere;
    shared.request_count = 0;
    shared.look_everywhere = false;
    Requests {
        databases,
        everywhere,
    }
}

/// What the server lacks for each database to have its own processes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Missing {
    /// Databases that share processes; 0 if none do.
    pub databases: i32,
    /// The processes that they share.
    pub processes: i32,
    /// What `max_worker_processes` would have to be.
    pub max_worker_processes: i32,
}

pub fn set_missing(missing: Missing) {
    SHARED.exclusive().missing = missing;
}

pub fn missing() -> Missing {
    SHARED.share().missing
}

pub fn is_vacated(database: pg_sys::Oid) -> bool {
    let now = time::now_micros();
    SHARED
        .share()
        .vacated
        .iter()
        .any(|vacated| vacated.database == database && vacated.until > now)
}

// What sessions do.

/// Leaves a wake-up for the workers of `database`, or for the launcher, if it has no dispatcher.
pub fn publish(database: pg_sys::Oid, wakeup: Wakeup) {
    let mut shared = SHARED.exclusive();
    let mut has_dispatcher = false;
    for slot in shared.workers.iter_mut() {
        if slot.database == database {
            slot.wakeup.add(wakeup);
            has_dispatcher |= slot.kind == WorkerKind::FIRST;
        }
    }
    if !has_dispatcher {
        databases::publish(&mut shared, database, wakeup);
    }
}

/// Wakes all workers of `database` except for this process: a worker looks again after each turn anyway.
pub fn wake_workers_of(database: pg_sys::Oid) {
    wake_those(database, |_| true);
}

/// Wakes the dispatchers that the wake-up concerns. Only the first one announces what becomes available.
pub fn wake_dispatchers_of(database: pg_sys::Oid, wakeup: Wakeup) {
    wake_those(database, |kind| match kind {
        WorkerKind::Dispatcher(number) => number == 0 || wakeup.due_at.is_some(),
        WorkerKind::Maintenance => false,
    });
}

fn wake_those(database: pg_sys::Oid, concerned: impl Fn(WorkerKind) -> bool) {
    let myself = LatchRef::mine();
    let shared = SHARED.share();
    for slot in &shared.workers {
        if slot.database == database && slot.latch != myself && concerned(slot.kind) {
            slot.latch.set();
        }
    }
}

pub fn wake_launcher() {
    SHARED.share().launcher.set();
}

/// Asks the launcher to look into `database`, where the extension may have appeared.
pub fn request_look(database: pg_sys::Oid) {
    let mut shared = SHARED.exclusive();
    let count = shared.request_count;
    if shared.requests[..count].contains(&database) {
        // Requested already.
    } else if count < MAX_REQUESTS {
        shared.requests[count] = database;
        shared.request_count += 1;
    } else {
        shared.look_everywhere = true;
    }
    shared.launcher.set();
}

/// Asks the workers of `database` to leave it, and the launcher to start none there until [`reoccupy`].
pub fn vacate(database: pg_sys::Oid) {
    {
        let now = time::now_micros();
        let until = now + VACATED_AT_MOST_MICROS;
        let mut shared = SHARED.exclusive();
        let slot = shared
            .vacated
            .iter_mut()
            .find(|slot| slot.database == database || slot.until < now);
        // If all places are taken, the command waits for the workers as for any other connection.
        if let Some(slot) = slot {
            *slot = Vacated { database, until };
        }
    }
    wake_workers_of(database);
    executors::vacate_executors(database);
}

/// Lets the workers of `database` return.
pub fn reoccupy(database: pg_sys::Oid) {
    let mut shared = SHARED.exclusive();
    for slot in shared.vacated.iter_mut() {
        if slot.database == database {
            *slot = Vacated::NONE;
        }
    }
    shared.launcher.set();
}
