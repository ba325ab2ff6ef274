//! What happens at commit: the workers hear of what this transaction has changed.
//!
//! A latch set before the commit would wake a dispatcher that can't see the change yet. Nothing is sent for
//! a transaction that rolls back, and a transaction that changes a thousand actions sends one signal.

use crate::{pg, shared};
use pgrx::{PgXactCallbackEvent, pg_sys, register_xact_callback};
use std::cell::Cell;

thread_local! {
    static PENDING: Cell<Pending> = const { Cell::new(Pending::NOTHING) };
}

#[derive(Clone, Copy)]
struct Pending {
    registered: bool,
    /// Something has changed that the workers of this database wait for.
    workers: bool,
    /// The earliest instant that a timer was set to.
    earliest: Option<pg_sys::TimestampTz>,
    /// The extension was created: the launcher must look at this database.
    look: bool,
    /// A database appeared or went: the launcher.
    launcher: bool,
    /// The workers may come back to this database when the transaction ends, whichever way.
    vacated: Option<pg_sys::Oid>,
}

impl Pending {
    const NOTHING: Pending = Pending {
        registered: false,
        workers: false,
        earliest: None,
        look: false,
        launcher: false,
        vacated: None,
    };
}

/// The workers of this database shall look at what they wait for.
pub fn workers_on_commit() {
    at_commit(|pending| pending.workers = true);
}

/// The dispatchers of this database must look at a timer that is due then.
pub fn dispatchers_on_commit(due_at: pg_sys::TimestampTz) {
    at_commit(|pending| {
        pending.workers = true;
        pending.earliest = Some(pending.earliest.map_or(due_at, |known| known.min(due_at)));
    });
}

/// A prepared transaction is being committed, and nobody knows what it changed.
pub fn anything_on_commit() {
    dispatchers_on_commit(pg_sys::TimestampTz::MIN);
}

/// While it exists, timers are changed by the dispatcher, which needs no word of it.
pub struct Dispatching(());

thread_local! {
    static IS_DISPATCHING: Cell<bool> = const { Cell::new(false) };
}

impl Dispatching {
    pub fn begin() -> Dispatching {
        IS_DISPATCHING.set(true);
        Dispatching(())
    }

    pub fn is_under_way() -> bool {
        IS_DISPATCHING.get()
    }
}

impl Drop for Dispatching {
    fn drop(&mut self) {
        IS_DISPATCHING.set(false);
    }
}

/// The launcher shall look whether this database needs a dispatcher.
pub fn look_on_commit() {
    at_commit(|pending| pending.look = true);
}

/// The launcher shall read the list of databases.
pub fn launcher_on_commit() {
    at_commit(|pending| pending.launcher = true);
}

/// Asks the workers of `database` to leave it until this transaction ends.
pub fn vacate_until_end(database: pg_sys::Oid) {
    at_commit(|pending| pending.vacated = Some(database));
    shared::vacate(database);
}

fn at_commit(add: impl FnOnce(&mut Pending)) {
    if !shared::available() {
        return;
    }
    let mut pending = PENDING.get();
    add(&mut pending);
    if !pending.registered {
        pending.registered = true;
        register_xact_callback(PgXactCallbackEvent::Commit, deliver);
        register_xact_callback(PgXactCallbackEvent::Abort, forget);
        // A prepared transaction is committed by another command, which is heard of by itself (hooks.rs).
        register_xact_callback(PgXactCallbackEvent::Prepare, forget);
    }
    PENDING.set(pending);
}

fn deliver() {
    let pending = PENDING.replace(Pending::NOTHING);
    let database = pg::my_database();
    if let Some(earliest) = pending.earliest {
        shared::post_earliest(database, earliest);
    }
    if pending.workers {
        shared::wake_workers_of(database);
    }
    if pending.look {
        shared::request_look(database);
    }
    if pending.launcher {
        shared::wake_launcher();
    }
    if let Some(database) = pending.vacated {
        shared::reoccupy(database);
    }
}

fn forget() {
    let pending = PENDING.replace(Pending::NOTHING);
    if let Some(database) = pending.vacated {
        shared::reoccupy(database);
    }
}
