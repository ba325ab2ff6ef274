//! Shared memory: where workers and sessions meet.
//!
//! Each worker enters its process and its latch; sessions set the latch, and leave requests for the launcher. One lock
//! guards all of it, and is held for a few loads and stores only.

use crate::pg::latch::LatchRef;
use crate::pg::{self, time};
use pgrx::prelude::*;
use pgrx::{PGRXSharedMemory, PgLwLock, pg_shmem_init, pg_sys};
use std::sync::atomic::{AtomicBool, Ordering};

/// At most this many workers serve databases at once.
const MAX_WORKERS: usize = 256;
/// At most this many dispatchers serve one database.
pub const MAX_DISPATCHERS: i32 = 16;
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

#[derive(Clone, Copy)]
struct WorkerSlot {
    /// Invalid if the slot is free.
    database: pg_sys::Oid,
    kind: WorkerKind,
    /// The number of the last reservation of this slot.
    reservation: usize,
    latch: LatchRef,
    exit: Exit,
    /// 0 before the worker has started, and after it has ended.
    pid: i32,
    state: WorkerState,
    state_since: pg_sys::TimestampTz,
    /// When the sleeping worker wakes by itself.
    wakes_at: pg_sys::TimestampTz,
    wakeup: Wakeup,
}

/// What a dispatcher has to look at again: collected since its last turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// The earliest instant that a timer was set to.
    pub due_at: Option<pg_sys::TimestampTz>,
    /// The earliest instant at which a dispatch becomes available that was not when it was written.
    pub available_at: Option<pg_sys::TimestampTz>,
}

impl Wakeup {
    pub const NOTHING: Wakeup = Wakeup {
        due_at: None,
        available_at: None,
    };
    pub const EVERYTHING: Wakeup = Wakeup {
        due_at: Some(pg_sys::TimestampTz::MIN),
        available_at: Some(pg_sys::TimestampTz::MIN),
    };

    pub fn add(&mut self, other: Wakeup) {
        let earlier = |a: Option<pg_sys::TimestampTz>, b| a.into_iter().chain(b).min();
        self.due_at = earlier(self.due_at, other.due_at);
        self.available_at = earlier(self.available_at, other.available_at);
    }
}

/// What a worker does for its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerKind {
    /// Numbered from 0; the first one also announces what becomes available.
    Dispatcher(u8),
    Maintenance,
}

impl WorkerKind {
    pub fn name(self) -> &'static str {
        match self {
            WorkerKind::Dispatcher(_) => "dispatcher",
            WorkerKind::Maintenance => "maintenance",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// The worker has not found the extension yet.
    Starting,
    Working,
    Sleeping,
    /// The worker waits after an error, before the next try.
    BackingOff,
}

impl WorkerState {
    pub fn name(self) -> &'static str {
        match self {
            WorkerState::Starting => "starting",
            WorkerState::Working => "working",
            WorkerState::Sleeping => "sleeping",
            WorkerState::BackingOff => "backing off",
        }
    }
}

#[derive(Clone, Copy)]
struct Vacated {
    database: pg_sys::Oid,
    until: pg_sys::TimestampTz,
}

/// Why a worker left its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The worker gave no reason: an error ended it, or a signal.
    Unexplained,
    /// The database has no extension.
    NothingToDo,
    /// The worker was asked to leave: the database is vacated, or dispatching is switched off.
    Asked,
}

impl Default for SharedState {
    fn default() -> Self {
        SharedState {
            launcher: LatchRef::NONE,
            workers: [WorkerSlot::FREE; MAX_WORKERS],
            last_reservation: 0,
            requests: [pg_sys::InvalidOid; MAX_REQUESTS],
            request_count: 0,
            look_everywhere: false,
            vacated: [Vacated::NONE; MAX_VACATED],
        }
    }
}

impl WorkerSlot {
    const FREE: WorkerSlot = WorkerSlot {
        database: pg_sys::InvalidOid,
        kind: WorkerKind::Maintenance,
        reservation: 0,
        latch: LatchRef::NONE,
        exit: Exit::Unexplained,
        pid: 0,
        state: WorkerState::Starting,
        state_since: 0,
        wakes_at: 0,
        // A dispatcher that starts looks at everything.
        wakeup: Wakeup::EVERYTHING,
    };
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

/// A slot that is kept for one worker, from before the worker starts until after it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    pub slot: usize,
    number: usize,
}

impl Reservation {
    /// As one word: a background worker is started with one argument.
    pub fn to_argument(self) -> usize {
        self.number * MAX_WORKERS + self.slot
    }

    pub fn from_argument(argument: usize) -> Reservation {
        Reservation {
            slot: argument % MAX_WORKERS,
            number: argument / MAX_WORKERS,
        }
    }
}

/// Reserves a slot for a worker of `database`; None when all are taken.
pub fn reserve_slot(database: pg_sys::Oid, kind: WorkerKind) -> Option<Reservation> {
    let mut shared = SHARED.exclusive();
    let slot = shared
        .workers
        .iter()
        .position(|slot| slot.database == pg_sys::InvalidOid)?;
    shared.last_reservation += 1;
    let number = shared.last_reservation;
    shared.workers[slot] = WorkerSlot {
        database,
        kind,
        reservation: number,
        state_since: time::now_micros(),
        ..WorkerSlot::FREE
    };
    Some(Reservation { slot, number })
}

/// Frees the slot of a worker that has ended, and returns why the worker left.
pub fn release_slot(index: usize) -> Exit {
    let mut shared = SHARED.exclusive();
    let exit = shared.workers[index].exit;
    shared.workers[index] = WorkerSlot::FREE;
    exit
}

/// A worker that an earlier launcher started.
pub struct Adopted {
    pub slot: usize,
    pub database: pg_sys::Oid,
    pub kind: WorkerKind,
}

/// The workers that run. Slots of workers that have ended, or have not started yet, are freed: a worker whose
/// reservation is gone when it starts exits at once.
pub fn adopt_workers() -> Vec<Adopted> {
    let mut shared = SHARED.exclusive();
    for slot in shared.workers.iter_mut().filter(|slot| slot.pid == 0) {
        *slot = WorkerSlot::FREE;
    }
    let occupied = shared
        .workers
        .iter()
        .enumerate()
        .filter(|(_, slot)| slot.pid != 0);
    occupied
        .map(|(index, slot)| Adopted {
            slot: index,
            database: slot.database,
            kind: slot.kind,
        })
        .collect()
}

/// Does a worker run in this slot?
pub fn is_occupied(index: usize) -> bool {
    SHARED.share().workers[index].pid != 0
}

// What a worker does.

pub fn report_state(index: usize, state: WorkerState, wakes_at: pg_sys::TimestampTz) {
    let now = time::now_micros();
    let mut shared = SHARED.exclusive();
    let slot = &mut shared.workers[index];
    slot.state = state;
    slot.state_since = now;
    slot.wakes_at = wakes_at;
}

/// What was published since the last call.
pub fn take_wakeup(index: usize) -> Wakeup {
    let mut shared = SHARED.exclusive();
    std::mem::replace(&mut shared.workers[index].wakeup, Wakeup::NOTHING)
}

/// Enters this process: from now on, changes in its database wake it. None if the reservation no longer exists, because
/// a new launcher has taken over from the one that made it.
pub fn occupy_slot(reservation: Reservation) -> Option<(pg_sys::Oid, WorkerKind)> {
    let mut shared = SHARED.exclusive();
    let slot = &mut shared.workers[reservation.slot];
    if slot.reservation != reservation.number {
        return None;
    }
    slot.latch = LatchRef::mine();
    slot.pid = pg::my_pid();
    Some((slot.database, slot.kind))
}

/// Removes this process, and wakes the launcher. The server reports the end of a worker only to the launcher that
/// started it, which may have been replaced.
pub fn leave_slot(index: usize) {
    let mut shared = SHARED.exclusive();
    shared.workers[index].latch = LatchRef::NONE;
    shared.workers[index].pid = 0;
    shared.launcher.set();
}

pub fn explain_exit(index: usize, exit: Exit) {
    SHARED.exclusive().workers[index].exit = exit;
}

pub fn is_vacated(database: pg_sys::Oid) -> bool {
    let now = time::now_micros();
    SHARED
        .share()
        .vacated
        .iter()
        .any(|vacated| vacated.database == database && vacated.until > now)
}

/// Has the worker in this slot found the extension in its database?
pub fn is_serving(index: usize) -> bool {
    SHARED.share().workers[index].state != WorkerState::Starting
}

/// A worker, as `recur.workers` shows it.
pub struct WorkerInfo {
    pub database: pg_sys::Oid,
    pub kind: WorkerKind,
    pub pid: i32,
    pub state: WorkerState,
    pub state_since: pg_sys::TimestampTz,
    pub wakes_at: pg_sys::TimestampTz,
}

pub fn workers() -> Vec<WorkerInfo> {
    let shared = SHARED.share();
    let occupied = shared.workers.iter().filter(|slot| slot.pid != 0);
    occupied
        .map(|slot| WorkerInfo {
            database: slot.database,
            kind: slot.kind,
            pid: slot.pid,
            state: slot.state,
            state_since: slot.state_since,
            wakes_at: slot.wakes_at,
        })
        .collect()
}

// What sessions do.

/// Leaves a wake-up for the workers of `database`.
pub fn publish(database: pg_sys::Oid, wakeup: Wakeup) {
    let mut shared = SHARED.exclusive();
    for slot in shared.workers.iter_mut() {
        if slot.database == database {
            slot.wakeup.add(wakeup);
        }
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
