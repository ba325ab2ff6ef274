//! The board: the small piece of shared memory where workers and sessions meet.
//!
//! Workers write down who they are and how to wake them; sessions wake them and leave requests for the
//! launcher. One lock guards it; it is held for a few loads and stores only.

use crate::pg::latch::LatchRef;
use pgrx::prelude::*;
use pgrx::{PGRXSharedMemory, PgLwLock, pg_shmem_init, pg_sys};
use std::sync::atomic::{AtomicBool, Ordering};

/// So many workers can serve databases at once.
const MAX_WORKERS: usize = 256;
/// So many dispatchers a database can have.
pub const MOST_DISPATCHERS: i32 = 16;
const MAX_REQUESTS: usize = 32;
const MAX_VACATED: usize = 16;
/// Should the session that vacated a database die before it gives it back, the workers return by themselves.
const VACATED_AT_MOST_MICROS: i64 = 10_000_000;

static BOARD: PgLwLock<Board> = unsafe { PgLwLock::new(c"pg_recur board") };
/// Set in the postmaster and inherited by every process that it starts.
static AVAILABLE: AtomicBool = AtomicBool::new(false);

#[derive(Clone, Copy)]
struct Board {
    launcher: LatchRef,
    workers: [WorkerSlot; MAX_WORKERS],
    /// Databases in which the extension may have appeared.
    requests: [pg_sys::Oid; MAX_REQUESTS],
    request_count: usize,
    /// More requests came than fit: look everywhere.
    look_everywhere: bool,
    /// Databases that somebody needs to have for himself for a moment.
    vacated: [Vacated; MAX_VACATED],
}

unsafe impl PGRXSharedMemory for Board {}

#[derive(Clone, Copy)]
struct WorkerSlot {
    /// Invalid: the slot is free.
    database: pg_sys::Oid,
    duty: Duty,
    latch: LatchRef,
    departure: Departure,
    pid: i32,
    state: WorkerState,
    state_since: pg_sys::TimestampTz,
    /// While it sleeps: when it wakes by itself.
    wakes_at: pg_sys::TimestampTz,
    posted: Posted,
}

/// What the dispatcher has to look at again, whatever it has seen before: collected since it last asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The earliest instant that a timer was set to.
    pub due_at: Option<pg_sys::TimestampTz>,
    /// The earliest instant at which a dispatch becomes available that was not when it was written.
    pub available_at: Option<pg_sys::TimestampTz>,
}

impl Posted {
    pub const NOTHING: Posted = Posted {
        due_at: None,
        available_at: None,
    };
    pub const EVERYTHING: Posted = Posted {
        due_at: Some(pg_sys::TimestampTz::MIN),
        available_at: Some(pg_sys::TimestampTz::MIN),
    };

    pub fn add(&mut self, other: Posted) {
        let earlier = |a: Option<pg_sys::TimestampTz>, b| a.into_iter().chain(b).min();
        self.due_at = earlier(self.due_at, other.due_at);
        self.available_at = earlier(self.available_at, other.available_at);
    }
}

/// What a worker does for its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Duty {
    /// Numbered from 0; the first one also announces what becomes available.
    Dispatcher(u8),
    Maintenance,
}

impl Duty {
    pub fn name(self) -> &'static str {
        match self {
            Duty::Dispatcher(_) => "dispatcher",
            Duty::Maintenance => "maintenance",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// It has not found the extension yet.
    Starting,
    Working,
    Sleeping,
    /// After an error it waits before it tries again.
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
pub enum Departure {
    /// It did not say: it died of an error, or was ended from outside.
    Unexplained,
    /// The database has no extension.
    NothingToDo,
    /// It was asked to go: the database is vacated, or dispatching is switched off.
    Asked,
}

impl Default for Board {
    fn default() -> Self {
        Board {
            launcher: LatchRef::NONE,
            workers: [WorkerSlot::FREE; MAX_WORKERS],
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
        duty: Duty::Maintenance,
        latch: LatchRef::NONE,
        departure: Departure::Unexplained,
        pid: 0,
        state: WorkerState::Starting,
        state_since: 0,
        wakes_at: 0,
        // A dispatcher that starts knows nothing: it looks at everything.
        posted: Posted::EVERYTHING,
    };
}

impl Vacated {
    const NONE: Vacated = Vacated {
        database: pg_sys::InvalidOid,
        until: 0,
    };
}

/// Asks for the memory. Only while the library is being preloaded.
pub fn request() {
    pg_shmem_init!(BOARD);
    crate::stats::request();
    AVAILABLE.store(true, Ordering::Relaxed);
}

/// Was the library preloaded? If not, there are no workers and nothing to meet them on.
pub fn available() -> bool {
    AVAILABLE.load(Ordering::Relaxed)
}

// What the launcher does.

pub fn register_launcher() {
    BOARD.exclusive().launcher = LatchRef::mine();
}

/// What has been asked of the launcher since it last looked.
pub struct Requests {
    pub databases: Vec<pg_sys::Oid>,
    pub everywhere: bool,
}

pub fn take_requests() -> Requests {
    let mut board = BOARD.exclusive();
    let databases = board.requests[..board.request_count].to_vec();
    let everywhere = board.look_everywhere;
    board.request_count = 0;
    board.look_everywhere = false;
    Requests {
        databases,
        everywhere,
    }
}

/// Takes a slot for a worker of `database`; None when all are taken.
pub fn reserve_slot(database: pg_sys::Oid, duty: Duty) -> Option<usize> {
    let mut board = BOARD.exclusive();
    let index = board
        .workers
        .iter()
        .position(|slot| slot.database == pg_sys::InvalidOid)?;
    board.workers[index] = WorkerSlot {
        database,
        duty,
        state_since: unsafe { pg_sys::GetCurrentTimestamp() },
        ..WorkerSlot::FREE
    };
    Some(index)
}

/// Gives the slot of a worker that has ended back, and says why it left.
pub fn release_slot(index: usize) -> Departure {
    let mut board = BOARD.exclusive();
    let departure = board.workers[index].departure;
    board.workers[index] = WorkerSlot::FREE;
    departure
}

// What a worker does.

/// What the launcher reserved this slot for.
pub fn assignment(index: usize) -> (pg_sys::Oid, Duty) {
    let slot = BOARD.share().workers[index];
    (slot.database, slot.duty)
}

pub fn report_state(index: usize, state: WorkerState, wakes_at: pg_sys::TimestampTz) {
    let now = unsafe { pg_sys::GetCurrentTimestamp() };
    let mut board = BOARD.exclusive();
    let slot = &mut board.workers[index];
    slot.state = state;
    slot.state_since = now;
    slot.wakes_at = wakes_at;
}

/// What was posted since the last call.
pub fn take_posted(index: usize) -> Posted {
    let mut board = BOARD.exclusive();
    std::mem::replace(&mut board.workers[index].posted, Posted::NOTHING)
}

/// From now on this process is woken by what concerns the slot's database.
pub fn occupy_slot(index: usize) {
    let mut board = BOARD.exclusive();
    board.workers[index].latch = LatchRef::mine();
    board.workers[index].pid = unsafe { pg_sys::MyProcPid };
}

/// Nobody shall wake this process any more.
pub fn leave_slot(index: usize) {
    let mut board = BOARD.exclusive();
    board.workers[index].latch = LatchRef::NONE;
    board.workers[index].pid = 0;
}

pub fn explain_departure(index: usize, departure: Departure) {
    BOARD.exclusive().workers[index].departure = departure;
}

pub fn is_vacated(database: pg_sys::Oid) -> bool {
    let now = unsafe { pg_sys::GetCurrentTimestamp() };
    BOARD
        .share()
        .vacated
        .iter()
        .any(|vacated| vacated.database == database && vacated.until > now)
}

/// Has the worker in this slot found the extension in its database?
pub fn is_serving(index: usize) -> bool {
    BOARD.share().workers[index].state != WorkerState::Starting
}

/// A worker as everybody may see it.
pub struct WorkerInfo {
    pub database: pg_sys::Oid,
    pub duty: Duty,
    pub pid: i32,
    pub state: WorkerState,
    pub state_since: pg_sys::TimestampTz,
    pub wakes_at: pg_sys::TimestampTz,
}

pub fn workers() -> Vec<WorkerInfo> {
    let board = BOARD.share();
    let occupied = board.workers.iter().filter(|slot| slot.pid != 0);
    occupied
        .map(|slot| WorkerInfo {
            database: slot.database,
            duty: slot.duty,
            pid: slot.pid,
            state: slot.state,
            state_since: slot.state_since,
            wakes_at: slot.wakes_at,
        })
        .collect()
}

// What sessions do.

/// Its dispatchers must not believe that they have seen this already.
pub fn post(database: pg_sys::Oid, news: Posted) {
    let mut board = BOARD.exclusive();
    for slot in board.workers.iter_mut() {
        if slot.database == database {
            slot.posted.add(news);
        }
    }
}

/// All but the one that asks: a worker looks at what it waits for after each turn anyway.
pub fn wake_workers_of(database: pg_sys::Oid) {
    wake_those(database, |_| true);
}

/// The dispatchers that the news are for. What becomes available concerns the first one alone.
pub fn wake_dispatchers_of(database: pg_sys::Oid, news: Posted) {
    wake_those(database, |duty| match duty {
        Duty::Dispatcher(number) => number == 0 || news.due_at.is_some(),
        Duty::Maintenance => false,
    });
}

fn wake_those(database: pg_sys::Oid, concerned: impl Fn(Duty) -> bool) {
    let myself = LatchRef::mine();
    let board = BOARD.share();
    for slot in &board.workers {
        if slot.database == database && slot.latch != myself && concerned(slot.duty) {
            slot.latch.set();
        }
    }
}

pub fn wake_launcher() {
    BOARD.share().launcher.set();
}

/// The extension may have appeared in `database`: the launcher shall look.
pub fn request_look(database: pg_sys::Oid) {
    let mut board = BOARD.exclusive();
    let count = board.request_count;
    if board.requests[..count].contains(&database) {
        // Asked already.
    } else if count < MAX_REQUESTS {
        board.requests[count] = database;
        board.request_count += 1;
    } else {
        board.look_everywhere = true;
    }
    board.launcher.set();
}

/// Asks the workers of `database` to leave it, and the launcher to start none there until [`reoccupy`].
pub fn vacate(database: pg_sys::Oid) {
    {
        let now = unsafe { pg_sys::GetCurrentTimestamp() };
        let until = now + VACATED_AT_MOST_MICROS;
        let mut board = BOARD.exclusive();
        let slot = board
            .vacated
            .iter_mut()
            .find(|slot| slot.database == database || slot.until < now);
        // Without a place on the list the caller waits for the workers as it would for anybody else.
        if let Some(slot) = slot {
            *slot = Vacated { database, until };
        }
    }
    wake_workers_of(database);
}

pub fn reoccupy(database: pg_sys::Oid) {
    let mut board = BOARD.exclusive();
    for slot in board.vacated.iter_mut() {
        if slot.database == database {
            *slot = Vacated::NONE;
        }
    }
    board.launcher.set();
}
