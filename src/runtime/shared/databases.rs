//! What is kept of a database while it has no dispatcher: what its sessions have left, and what its last dispatcher
//! knew. The launcher keeps the list, and sees from it when a database is to be visited.

use super::{SHARED, SharedState, Wakeup};
use pgrx::pg_sys;

/// Of more databases than this nothing is kept: without a dispatcher, the rest are visited in rounds only.
pub(super) const MAX_DATABASES: usize = 1024;
/// Stands for an instant that is not known.
pub const NEVER: pg_sys::TimestampTz = pg_sys::TimestampTz::MAX;

#[derive(Clone, Copy)]
pub struct DatabaseEntry {
    pub database: pg_sys::Oid,
    /// Has a worker found the extension?
    pub is_served: bool,
    /// When something is due, as far as its last dispatcher knew and sessions have said since.
    pub next_at: pg_sys::TimestampTz,
    /// When the launcher means to visit the database; [`NEVER`] if it has a process, or needs none.
    pub visit_at: pg_sys::TimestampTz,
    /// History is to be truncated, or names of roles have changed.
    pub needs_maintenance: bool,
    wakeup: Wakeup,
    handover: Option<Handover>,
}

/// What a first dispatcher leaves to the next one in its database.
#[derive(Clone, Copy)]
pub struct Handover {
    /// Dispatches that became available up to here have been announced.
    pub announced_until: pg_sys::TimestampTz,
    /// When it was last seen whether the database needs maintenance.
    pub checked_at: pg_sys::TimestampTz,
}

impl DatabaseEntry {
    pub(super) const NONE: DatabaseEntry = DatabaseEntry {
        database: pg_sys::InvalidOid,
        is_served: false,
        next_at: NEVER,
        visit_at: NEVER,
        needs_maintenance: false,
        wakeup: Wakeup::NOTHING,
        handover: None,
    };

    fn new(database: pg_sys::Oid) -> DatabaseEntry {
        DatabaseEntry {
            database,
            ..DatabaseEntry::NONE
        }
    }
}

// What the launcher does.

/// All databases that are kept.
pub fn databases() -> Vec<DatabaseEntry> {
    let shared = SHARED.share();
    shared.databases[..shared.database_count].to_vec()
}

/// How many databases have the extension, as far as is known.
pub fn served_databases() -> usize {
    let shared = SHARED.share();
    let kept = &shared.databases[..shared.database_count];
    kept.iter().filter(|entry| entry.is_served).count()
}

/// Keeps a database, from now on.
pub fn keep_database(database: pg_sys::Oid) {
    let mut shared = SHARED.exclusive();
    let count = shared.database_count;
    let is_kept = |one: &DatabaseEntry| one.database == database;
    if count < MAX_DATABASES && !shared.databases[..count].iter().any(is_kept) {
        shared.databases[count] = DatabaseEntry::new(database);
        shared.database_count += 1;
    }
}

/// Forgets a database that was dropped.
pub fn forget_database(database: pg_sys::Oid) {
    let mut shared = SHARED.exclusive();
    let count = shared.database_count;
    let is_gone = |one: &DatabaseEntry| one.database == database;
    if let Some(index) = shared.databases[..count].iter().position(is_gone) {
        shared.databases[index] = shared.databases[count - 1];
        shared.databases[count - 1] = DatabaseEntry::NONE;
        shared.database_count -= 1;
    }
}

/// Says when the launcher means to visit the database.
pub fn plan_visit(database: pg_sys::Oid, visit_at: pg_sys::TimestampTz) {
    change(&mut SHARED.exclusive(), database, |entry| {
        entry.visit_at = visit_at;
    });
}

/// A maintenance process is being started.
pub fn note_maintenance(database: pg_sys::Oid) {
    change(&mut SHARED.exclusive(), database, |entry| {
        entry.needs_maintenance = false;
    });
}

// What a worker does.

/// Asks for a maintenance process in the database.
pub fn request_maintenance(database: pg_sys::Oid) {
    let mut shared = SHARED.exclusive();
    change(&mut shared, database, |entry| {
        entry.needs_maintenance = true
    });
    shared.launcher.set();
}

/// Leaves what the dispatcher knows to the next one. Without it, that one announces everything once more.
pub fn hand_over(database: pg_sys::Oid, handover: Handover) {
    change(&mut SHARED.exclusive(), database, |entry| {
        entry.handover = Some(handover);
    });
}

// What the rest of the module does, under the lock.

fn change<R>(
    shared: &mut SharedState,
    database: pg_sys::Oid,
    change: impl FnOnce(&mut DatabaseEntry) -> R,
) -> Option<R> {
    let count = shared.database_count;
    let entries = &mut shared.databases[..count];
    let entry = entries.iter_mut().find(|one| one.database == database);
    entry.map(change)
}

/// A slot has been reserved for the first dispatcher of the database: what sessions have left is for its eyes.
/// Returns when something is due as well.
pub(super) fn begin_service(
    shared: &mut SharedState,
    database: pg_sys::Oid,
) -> (Wakeup, pg_sys::TimestampTz) {
    let left = change(shared, database, |entry| {
        entry.visit_at = NEVER;
        let next_at = std::mem::replace(&mut entry.next_at, NEVER);
        let wakeup = std::mem::replace(&mut entry.wakeup, Wakeup::NOTHING);
        entry.handover.map(|_| (wakeup, next_at))
    });
    let nothing_is_known = (Wakeup::EVERYTHING, pg_sys::TimestampTz::MIN);
    left.flatten().unwrap_or(nothing_is_known)
}

/// The first dispatcher has started, and takes over.
pub(super) fn take_handover(shared: &mut SharedState, database: pg_sys::Oid) -> Option<Handover> {
    change(shared, database, |entry| entry.handover.take()).flatten()
}

pub(super) fn note_served(shared: &mut SharedState, database: pg_sys::Oid) {
    change(shared, database, |entry| entry.is_served = true);
}

/// The database has no extension.
pub(super) fn note_unserved(shared: &mut SharedState, database: pg_sys::Oid) {
    change(shared, database, |entry| {
        *entry = DatabaseEntry::new(entry.database)
    });
}

/// The first dispatcher has left: `wakeup` has come too late for it, and `next_at` is when it would have woken.
pub(super) fn end_service(
    shared: &mut SharedState,
    database: pg_sys::Oid,
    wakeup: Wakeup,
    next_at: pg_sys::TimestampTz,
) {
    change(shared, database, |entry| {
        entry.wakeup.add(wakeup);
        entry.next_at = next_at.min(wakeup.earliest().unwrap_or(NEVER));
    });
}

/// A session leaves a wake-up where there is no dispatcher. The launcher is woken if something is due earlier than it
/// knows: of a thousand changes, most of the time only by the first.
pub(super) fn publish(shared: &mut SharedState, database: pg_sys::Oid, wakeup: Wakeup) {
    let at = wakeup.earliest().unwrap_or(NEVER);
    let is_news = change(shared, database, |entry| {
        entry.wakeup.add(wakeup);
        let is_earlier = at < entry.next_at;
        entry.next_at = at.min(entry.next_at);
        is_earlier
    });
    if is_news == Some(true) {
        shared.launcher.set();
    }
}
