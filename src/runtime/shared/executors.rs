//! The slots of executors: which process runs what, of which owner, in which database. A lock of their own guards them,
//! so that runs and dispatching do not wait for each other.

use super::demand::{Demands, WaitsFor};
use super::proven::Proven;
use crate::pg::latch::LatchRef;
use crate::pg::{self, time};
use pgrx::prelude::*;
use pgrx::{PGRXSharedMemory, PgLwLock, pg_shmem_init, pg_sys};
use uuid::Uuid;

/// At most this many executors run at once, in all databases.
pub const MAX_EXECUTORS: usize = 64;
/// Of more failed starts than this, the first ones are forgotten.
const MAX_FAILURES: usize = 32;
/// A process that has not started after this time never does; its slot is free again. One that starts later finds its
/// reservation gone, and exits.
const STARTS_WITHIN_MICROS: i64 = 60_000_000;
/// An executor that others wait for serves its owner this long.
const SERVES_AT_LEAST_MICROS: i64 = 250_000;

// SAFETY: no other extension names a lock like this.
static EXECUTORS: PgLwLock<Executors> = unsafe { PgLwLock::new(c"pg_recur executors") };

#[derive(Clone, Copy)]
struct Executors {
    slots: [Slot; MAX_EXECUTORS],
    last_reservation: usize,
    /// Owners as whom no process could connect: (database, owner).
    failures: [(pg_sys::Oid, i32); MAX_FAILURES],
    failure_count: usize,
    demands: Demands,
    proven: Proven,
}

// SAFETY: plain values without pointers, except for latches, which have the same address in every process.
unsafe impl PGRXSharedMemory for Executors {}

/// An attempt at a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    pub dispatch: Uuid,
    pub number: i32,
}

/// Why a run is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// Somebody has cancelled the dispatch.
    Cancel,
    /// A command needs the database without other connections.
    Vacate,
}

#[derive(Clone, Copy)]
struct Slot {
    /// Invalid if the slot is free.
    database: pg_sys::Oid,
    owner_id: i32,
    role: pg_sys::Oid,
    reservation: usize,
    /// 0 before the process has started.
    pid: i32,
    latch: LatchRef,
    is_connected: bool,
    is_asked_to_leave: bool,
    /// When the slot was reserved, or the process began to serve its owner.
    since: pg_sys::TimestampTz,
    /// What runs, and what is claimed to run next.
    attempts: [Option<Attempt>; 2],
    /// Are it and others run in one transaction?
    is_group: bool,
    began_at: pg_sys::TimestampTz,
    /// When what runs is to be over; 0 if it may take any time.
    deadline: pg_sys::TimestampTz,
    /// Why each of them is to stop.
    interrupts: [Option<Interrupt>; 2],
    interrupted_at: pg_sys::TimestampTz,
}

impl Slot {
    const FREE: Slot = Slot {
        database: pg_sys::InvalidOid,
        owner_id: 0,
        role: pg_sys::InvalidOid,
        reservation: 0,
        pid: 0,
        latch: LatchRef::NONE,
        is_connected: false,
        is_asked_to_leave: false,
        since: 0,
        attempts: [None; 2],
        is_group: false,
        began_at: 0,
        deadline: 0,
        interrupts: [None; 2],
        interrupted_at: 0,
    };

    fn is_free(&self) -> bool {
        self.database == pg_sys::InvalidOid
    }

    fn overdue_since(&self) -> Option<pg_sys::TimestampTz> {
        let interrupted = self.interrupts[0].map(|_| self.interrupted_at);
        let deadline = (self.deadline != 0).then_some(self.deadline);
        let is_running = self.attempts[0].is_some();
        interrupted
            .into_iter()
            .chain(deadline)
            .min()
            .filter(|_| is_running)
    }

    fn is_idle(&self) -> bool {
        self.is_connected && self.attempts[0].is_none()
    }
}

impl Default for Executors {
    fn default() -> Self {
        Executors {
            slots: [Slot::FREE; MAX_EXECUTORS],
            last_reservation: 0,
            failures: [(pg_sys::InvalidOid, 0); MAX_FAILURES],
            failure_count: 0,
            demands: Demands::NONE,
            proven: Proven::NONE,
        }
    }
}

/// Requests the memory. Only while the library is being preloaded.
pub fn request() {
    pg_shmem_init!(EXECUTORS);
}

/// A slot that is kept for one process, from before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutorReservation {
    pub slot: usize,
    number: usize,
}

impl ExecutorReservation {
    /// As one word: a background worker is started with one argument.
    pub fn to_argument(self) -> usize {
        self.number * MAX_EXECUTORS + self.slot
    }

    pub fn from_argument(argument: usize) -> ExecutorReservation {
        ExecutorReservation {
            slot: argument % MAX_EXECUTORS,
            number: argument / MAX_EXECUTORS,
        }
    }
}

/// As whom an executor works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Post {
    pub database: pg_sys::Oid,
    pub owner_id: i32,
    pub role: pg_sys::Oid,
}

// What a dispatcher does.

/// Reserves a slot for an executor; None if that many run already, in all databases, or if another database has waited
/// longer for the slot.
pub fn reserve(post: Post, most: usize) -> Option<ExecutorReservation> {
    let now = time::now_micros();
    let mut shared = EXECUTORS.exclusive();
    for slot in &mut shared.slots {
        if !slot.is_free() && slot.pid == 0 && now - slot.since > STARTS_WITHIN_MICROS {
            *slot = Slot::FREE;
        }
    }
    let taken = shared.slots.iter().filter(|slot| !slot.is_free()).count();
    let ahead = shared.demands.ahead_of(post.database, now);
    let free = shared.slots.iter().position(Slot::is_free);
    let slot = free.filter(|_| taken + ahead < most)?;
    shared.last_reservation += 1;
    let number = shared.last_reservation;
    shared.slots[slot] = Slot {
        database: post.database,
        owner_id: post.owner_id,
        role: post.role,
        reservation: number,
        since: now,
        ..Slot::FREE
    };
    Some(ExecutorReservation { slot, number })
}

/// Frees a slot whose process could not be started.
pub fn release(reservation: ExecutorReservation) {
    let mut shared = EXECUTORS.exclusive();
    let slot = &mut shared.slots[reservation.slot];
    if slot.reservation == reservation.number && slot.pid == 0 {
        *slot = Slot::FREE;
    }
}

/// An executor, as others see it.
#[derive(Clone, Copy)]
pub struct ExecutorInfo {
    pub post: Post,
    pub slot: usize,
    /// None before the process has started.
    pub pid: Option<i32>,
    pub is_idle: bool,
    pub since: pg_sys::TimestampTz,
    pub attempt: Option<Attempt>,
    pub began_at: pg_sys::TimestampTz,
    /// Since when what runs should have stopped: it was interrupted, or its time is over.
    pub overdue_since: Option<pg_sys::TimestampTz>,
}

/// The executors of all databases.
pub fn executors() -> Vec<ExecutorInfo> {
    let shared = EXECUTORS.share();
    let taken = shared.slots.iter().enumerate();
    let taken = taken.filter(|(_, slot)| !slot.is_free());
    taken
        .map(|(index, slot)| ExecutorInfo {
            post: Post {
                database: slot.database,
                owner_id: slot.owner_id,
                role: slot.role,
            },
            slot: index,
            pid: (slot.pid != 0).then_some(slot.pid),
            is_idle: slot.is_idle(),
            since: slot.since,
            attempt: slot.attempts[0],
            began_at: slot.began_at,
            overdue_since: slot.overdue_since(),
        })
        .collect()
}

/// All attempts that an executor of the database runs, or has claimed.
pub fn attempts_of(database: pg_sys::Oid) -> Vec<Attempt> {
    let shared = EXECUTORS.share();
    let slots = shared.slots.iter();
    let of_database = slots.filter(|slot| slot.database == database);
    of_database
        .flat_map(|slot| slot.attempts.into_iter().flatten())
        .collect()
}

/// Wakes executors of the owner that have nothing to run.
pub fn wake_idle(database: pg_sys::Oid, owner_id: i32) {
    let shared = EXECUTORS.share();
    for slot in &shared.slots {
        if slot.database == database && slot.owner_id == owner_id && slot.is_idle() {
            slot.latch.set();
        }
    }
}

/// Stops an attempt, if it still runs, or is about to. The signal is sent under the lock: a process that goes on to its
/// next run takes the lock first.
pub fn interrupt(attempt: Attempt, why: Interrupt) {
    let now = time::now_micros();
    let mut shared = EXECUTORS.exclusive();
    for slot in &mut shared.slots {
        let place = slot.attempts.iter().position(|one| *one == Some(attempt));
        match place {
            Some(place) if slot.interrupts[place].is_none() => {
                interrupt_slot(slot, place, why, now)
            }
            // It may have caught the first one.
            Some(0) => signal(slot),
            _ => {}
        }
    }
}

fn interrupt_slot(slot: &mut Slot, place: usize, why: Interrupt, now: pg_sys::TimestampTz) {
    slot.interrupts[place] = Some(why);
    slot.interrupted_at = now;
    if place == 0 {
        signal(slot);
    }
}

fn signal(slot: &Slot) {
    // SAFETY: the process has entered its slot and not left it. The signal is the server's own for cancelling.
    unsafe { libc::kill(slot.pid, libc::SIGINT) };
}

/// Signals runs of the database that should have stopped once more: their code may have caught the first signal.
pub fn signal_overdue(database: pg_sys::Oid) {
    const AGAIN_AFTER_MICROS: i64 = 5_000_000;
    let now = time::now_micros();
    let shared = EXECUTORS.exclusive();
    let of_database = shared.slots.iter().filter(|slot| slot.database == database);
    let is_overdue = |slot: &&Slot| {
        slot.overdue_since()
            .is_some_and(|since| now - since > AGAIN_AFTER_MICROS)
    };
    of_database.filter(is_overdue).for_each(signal);
}

/// Asks an executor to leave when its run is over.
pub fn ask_executor_to_leave(index: usize) {
    let mut shared = EXECUTORS.exclusive();
    shared.slots[index].is_asked_to_leave = true;
    shared.slots[index].latch.set();
}

/// Asks an executor that has nothing to run to leave, in whatever database: others wait for its slot.
pub fn ask_idle_executor_to_leave() {
    let mut shared = EXECUTORS.exclusive();
    if let Some(index) = shared.slots.iter().position(Slot::is_idle) {
        shared.slots[index].is_asked_to_leave = true;
        shared.slots[index].latch.set();
    }
}

/// Says what the database waits for, from now on.
pub fn set_waiting(database: pg_sys::Oid, waits_for: WaitsFor) {
    let now = time::now_micros();
    EXECUTORS.exclusive().demands.set(database, waits_for, now);
}

/// Owners of the database as whom no process could connect since the last call.
pub fn take_failures(database: pg_sys::Oid) -> Vec<i32> {
    let mut shared = EXECUTORS.exclusive();
    let count = shared.failure_count;
    let (own, others): (Vec<_>, Vec<_>) = shared.failures[..count]
        .iter()
        .partition(|(of, _)| *of == database);
    if !own.is_empty() {
        shared.failures[..others.len()].copy_from_slice(&others);
        shared.failure_count = others.len();
    }
    own.into_iter().map(|(_, owner_id)| owner_id).collect()
}

// What the launcher does.

/// A dispatcher needs the slot of the server that an executor has: one leaves, an idle one if there is any.
pub fn ask_any_executor_to_leave() {
    let mut shared = EXECUTORS.exclusive();
    let asked = |slot: &Slot| !slot.is_free() && slot.is_asked_to_leave;
    if shared.slots.iter().any(asked) {
        return;
    }
    let idle = shared.slots.iter().position(Slot::is_idle);
    let busy = || shared.slots.iter().position(|slot| slot.pid != 0);
    if let Some(index) = idle.or_else(busy) {
        shared.slots[index].is_asked_to_leave = true;
        shared.slots[index].latch.set();
    }
}

// What sessions do.

/// Sends the executors of a database away: a command needs it without other connections.
pub fn vacate_executors(database: pg_sys::Oid) {
    let now = time::now_micros();
    let mut shared = EXECUTORS.exclusive();
    for slot in &mut shared.slots {
        if slot.database == database && slot.pid != 0 {
            slot.is_asked_to_leave = true;
            slot.latch.set();
            for place in 0..2 {
                if slot.attempts[place].is_some() && slot.interrupts[place].is_none() {
                    interrupt_slot(slot, place, Interrupt::Vacate, now);
                }
            }
        }
    }
}

// What an executor does.

/// Enters this process; None if its reservation is gone.
pub fn occupy(reservation: ExecutorReservation) -> Option<Post> {
    let mut shared = EXECUTORS.exclusive();
    let slot = &mut shared.slots[reservation.slot];
    if slot.reservation != reservation.number || slot.is_free() {
        return None;
    }
    slot.latch = LatchRef::mine();
    slot.pid = pg::my_pid();
    Some(Post {
        database: slot.database,
        owner_id: slot.owner_id,
        role: slot.role,
    })
}

/// The process is connected, and serves its owner from now on.
pub fn note_connected(index: usize) {
    let mut shared = EXECUTORS.exclusive();
    shared.slots[index].is_connected = true;
    shared.slots[index].since = time::now_micros();
}

/// Removes this process, and returns its database: the dispatcher looks what it has left behind.
pub fn leave(index: usize) -> pg_sys::Oid {
    let mut shared = EXECUTORS.exclusive();
    let slot = std::mem::replace(&mut shared.slots[index], Slot::FREE);
    if !slot.is_connected && shared.failure_count < MAX_FAILURES {
        let count = shared.failure_count;
        shared.failures[count] = (slot.database, slot.owner_id);
        shared.failure_count += 1;
    }
    if slot.is_group {
        shared.proven.forget(slot.database, slot.owner_id);
    }
    slot.database
}

/// Has enough of the owner run alone for calls to share a transaction?
pub fn is_proven(index: usize) -> bool {
    let shared = EXECUTORS.share();
    let slot = &shared.slots[index];
    shared.proven.contains(slot.database, slot.owner_id)
}

pub fn note_proven(index: usize) {
    let mut shared = EXECUTORS.exclusive();
    let slot = shared.slots[index];
    shared.proven.add(slot.database, slot.owner_id);
}

/// A group runs, of which this is the first attempt.
pub fn begin_group(index: usize, first: Attempt) {
    let now = time::now_micros();
    let mut shared = EXECUTORS.exclusive();
    let slot = &mut shared.slots[index];
    slot.attempts = [Some(first), None];
    slot.interrupts = [None; 2];
    slot.is_group = true;
    slot.began_at = now;
    slot.deadline = 0;
}

/// An attempt is claimed, to run next. Noted before the claim is committed: what is committed and not noted has been
/// left behind by a process that is gone.
pub fn note_claimed(index: usize, attempt: Attempt) {
    EXECUTORS.exclusive().slots[index].attempts[1] = Some(attempt);
}

/// The attempt that was claimed runs now.
pub fn begin_run(index: usize) {
    let now = time::now_micros();
    let mut shared = EXECUTORS.exclusive();
    let slot = &mut shared.slots[index];
    slot.attempts = [slot.attempts[1], None];
    slot.interrupts = [slot.interrupts[1], None];
    slot.is_group = false;
    slot.began_at = now;
    slot.deadline = 0;
}

/// What runs is to be over by then.
pub fn set_deadline(index: usize, deadline: pg_sys::TimestampTz) {
    EXECUTORS.exclusive().slots[index].deadline = deadline;
}

/// Nothing runs, and nothing is claimed.
pub fn end_run(index: usize) {
    let mut shared = EXECUTORS.exclusive();
    shared.slots[index].attempts = [None; 2];
    shared.slots[index].interrupts = [None; 2];
    shared.slots[index].is_group = false;
}

/// The claim was rolled back.
pub fn forget_claimed(index: usize) {
    let mut shared = EXECUTORS.exclusive();
    shared.slots[index].attempts[1] = None;
    shared.slots[index].interrupts[1] = None;
}

/// Why the attempt that runs is to stop, if it is.
pub fn interruption(index: usize) -> Option<Interrupt> {
    EXECUTORS.share().slots[index].interrupts[0]
}

/// Is this process to leave: because it was asked, or because others wait and it has served its owner for a while?
pub fn is_to_leave(index: usize) -> bool {
    let now = time::now_micros();
    let shared = EXECUTORS.share();
    let slot = &shared.slots[index];
    let is_wanted = shared.demands.concern(slot.database, now);
    slot.is_asked_to_leave || (now - slot.since > SERVES_AT_LEAST_MICROS && is_wanted)
}
