//! The slots of workers: each worker enters its process and its latch, and says what it does.

use super::databases::{self, Handover, NEVER};
use super::{SHARED, SharedState, Wakeup};
use crate::pg::latch::LatchRef;
use crate::pg::{self, time};
use pgrx::pg_sys;

/// At most this many workers serve databases at once.
pub const MAX_WORKERS: usize = 256;
/// At most this many dispatchers serve one database.
pub const MAX_DISPATCHERS: i32 = 16;

#[derive(Clone, Copy)]
pub(super) struct WorkerSlot {
    /// Invalid if the slot is free.
    pub database: pg_sys::Oid,
    pub kind: WorkerKind,
    /// Is this the worker that goes from one database to the next?
    roams: bool,
    /// Another database needs the slot.
    asked_to_leave: bool,
    /// The number of the last reservation of this slot.
    reservation: usize,
    pub latch: LatchRef,
    exit: Exit,
    /// 0 before the worker has started, and after it has ended.
    pid: i32,
    state: WorkerState,
    state_since: pg_sys::TimestampTz,
    /// When the sleeping worker wakes by itself.
    wakes_at: pg_sys::TimestampTz,
    /// When something is due, as far as the worker knows.
    next_at: pg_sys::TimestampTz,
    pub wakeup: Wakeup,
}

/// What a worker does for its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerKind {
    /// Numbered from 0; the first one also announces what becomes available, and expires leases.
    Dispatcher(u8),
    /// Does what may wait for locks, and exits.
    Maintenance,
}

impl WorkerKind {
    pub const FIRST: WorkerKind = WorkerKind::Dispatcher(0);

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

/// Why a worker left its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The worker gave no reason: an error ended it, or a signal.
    Unexplained,
    /// The database has no extension.
    NothingToDo,
    /// The worker was asked to leave: the database is vacated, dispatching is switched off, or another database needs
    /// the slot.
    Asked,
    /// The same, while the worker was backing off after an error.
    AskedAfterError,
}

impl WorkerSlot {
    pub const FREE: WorkerSlot = WorkerSlot {
        database: pg_sys::InvalidOid,
        kind: WorkerKind::Maintenance,
        roams: false,
        asked_to_leave: false,
        reservation: 0,
        latch: LatchRef::NONE,
        exit: Exit::Unexplained,
        pid: 0,
        state: WorkerState::Starting,
        state_since: 0,
        wakes_at: 0,
        next_at: NEVER,
        // A dispatcher that starts looks at everything.
        wakeup: Wakeup::EVERYTHING,
    };
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

// What the launcher does.

/// Reserves a slot for a worker of `database`; None when all are taken.
pub fn reserve_slot(database: pg_sys::Oid, kind: WorkerKind, roams: bool) -> Option<Reservation> {
    let mut shared = SHARED.exclusive();
    let slot = shared
        .workers
        .iter()
        .position(|slot| slot.database == pg_sys::InvalidOid)?;
    let (wakeup, next_at) = match kind {
        WorkerKind::FIRST => databases::begin_service(&mut shared, database),
        _ => (Wakeup::EVERYTHING, NEVER),
    };
    shared.last_reservation += 1;
    let number = shared.last_reservation;
    shared.workers[slot] = WorkerSlot {
        database,
        kind,
        roams,
        reservation: number,
        state_since: time::now_micros(),
        next_at,
        wakeup,
        ..WorkerSlot::FREE
    };
    Some(Reservation { slot, number })
}

/// Frees the slot of a worker that has ended, and returns why the worker left.
pub fn release_slot(index: usize) -> Exit {
    let mut shared = SHARED.exclusive();
    let exit = shared.workers[index].exit;
    free(&mut shared, index);
    exit
}

fn free(shared: &mut SharedState, index: usize) {
    let slot = std::mem::replace(&mut shared.workers[index], WorkerSlot::FREE);
    match (slot.kind, slot.exit) {
        (WorkerKind::FIRST, Exit::NothingToDo) => databases::note_unserved(shared, slot.database),
        (WorkerKind::FIRST, _) => {
            databases::end_service(shared, slot.database, slot.wakeup, slot.next_at);
        }
        _ => {}
    }
}

/// Says whether the worker in this slot is the one that roams.
pub fn set_roams(index: usize, roams: bool) {
    SHARED.exclusive().workers[index].roams = roams;
}

/// Asks the worker in this slot to leave as soon as nothing is due.
pub fn ask_to_leave(index: usize) {
    let mut shared = SHARED.exclusive();
    let slot = &mut shared.workers[index];
    slot.asked_to_leave = true;
    slot.latch.set();
}

/// A worker that an earlier launcher started.
pub struct Adopted {
    pub slot: usize,
    pub database: pg_sys::Oid,
    pub kind: WorkerKind,
    pub roams: bool,
}

/// The workers that run. Slots of workers that have ended, or have not started yet, are freed: a worker whose
/// reservation is gone when it starts exits at once.
pub fn adopt_workers() -> Vec<Adopted> {
    let mut shared = SHARED.exclusive();
    for index in 0..MAX_WORKERS {
        let slot = &shared.workers[index];
        if slot.database != pg_sys::InvalidOid && slot.pid == 0 {
            free(&mut shared, index);
        }
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
            roams: slot.roams,
        })
        .collect()
}

/// Does a worker run in this slot?
pub fn is_occupied(index: usize) -> bool {
    SHARED.share().workers[index].pid != 0
}

/// What the launcher asks about a worker.
pub struct Occupation {
    pub state: WorkerState,
    pub next_at: pg_sys::TimestampTz,
    pub asked_to_leave: bool,
}

pub fn occupation(index: usize) -> Occupation {
    let shared = SHARED.share();
    let slot = &shared.workers[index];
    Occupation {
        state: slot.state,
        next_at: slot.next_at,
        asked_to_leave: slot.asked_to_leave,
    }
}

// What a worker does.

/// Says what the worker does now. `next_at` is when something is due, whatever it wakes for before.
pub fn report_state(
    index: usize,
    state: WorkerState,
    wakes_at: pg_sys::TimestampTz,
    next_at: pg_sys::TimestampTz,
) {
    let now = time::now_micros();
    let mut shared = SHARED.exclusive();
    let slot = &mut shared.workers[index];
    let is_first_report = slot.state == WorkerState::Starting;
    slot.state = state;
    slot.state_since = now;
    slot.wakes_at = wakes_at;
    slot.next_at = next_at;
    if is_first_report {
        let database = slot.database;
        databases::note_served(&mut shared, database);
    }
}

/// What was published since the last call.
pub fn take_wakeup(index: usize) -> Wakeup {
    let mut shared = SHARED.exclusive();
    std::mem::replace(&mut shared.workers[index].wakeup, Wakeup::NOTHING)
}

/// Has anything been published since the last call of [`take_wakeup`]? The latch alone does not say: a wait for a lock
/// resets it.
pub fn has_wakeup(index: usize) -> bool {
    SHARED.share().workers[index].wakeup != Wakeup::NOTHING
}

/// May there be something to run in the database itself, since the last call?
pub fn take_work(index: usize) -> bool {
    let mut shared = SHARED.exclusive();
    std::mem::take(&mut shared.workers[index].wakeup.has_work)
}

/// Does another database need the slot?
pub fn is_asked_to_leave(index: usize) -> bool {
    SHARED.share().workers[index].asked_to_leave
}

/// What a worker is to do.
pub struct Task {
    pub database: pg_sys::Oid,
    pub kind: WorkerKind,
    /// For a first dispatcher.
    pub handover: Option<Handover>,
}

/// Enters this process: from now on, changes in its database wake it. None if the reservation no longer exists, because
/// a new launcher has taken over from the one that made it.
pub fn occupy_slot(reservation: Reservation) -> Option<Task> {
    let mut shared = SHARED.exclusive();
    let slot = &mut shared.workers[reservation.slot];
    if slot.reservation != reservation.number {
        return None;
    }
    slot.latch = LatchRef::mine();
    slot.pid = pg::my_pid();
    let (database, kind) = (slot.database, slot.kind);
    let handover = match kind {
        WorkerKind::FIRST => databases::take_handover(&mut shared, database),
        _ => None,
    };
    Some(Task {
        database,
        kind,
        handover,
    })
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

/// A worker, or a database without one, as `recur.workers` shows it.
pub struct WorkerInfo {
    pub database: pg_sys::Oid,
    pub kind: &'static str,
    pub pid: Option<i32>,
    pub state: &'static str,
    pub state_since: Option<pg_sys::TimestampTz>,
    pub wakes_at: pg_sys::TimestampTz,
}

pub fn workers() -> Vec<WorkerInfo> {
    let shared = SHARED.share();
    let occupied = shared.workers.iter().filter(|slot| slot.pid != 0);
    let workers = occupied.map(|slot| WorkerInfo {
        database: slot.database,
        kind: if slot.roams {
            "roaming"
        } else {
            slot.kind.name()
        },
        pid: Some(slot.pid),
        state: slot.state.name(),
        state_since: Some(slot.state_since),
        wakes_at: slot.wakes_at,
    });
    let waiting = shared.databases[..shared.database_count].iter();
    let waiting = waiting.filter(|entry| entry.is_served && entry.visit_at != NEVER);
    let waiting = waiting.map(|entry| WorkerInfo {
        database: entry.database,
        kind: "none",
        pid: None,
        state: "waiting",
        state_since: None,
        wakes_at: entry.visit_at,
    });
    workers.chain(waiting).collect()
}
