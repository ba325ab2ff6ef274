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
    /// Timers have changed: the dispatchers of this database.
    dispatchers: bool,
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
        dispatchers: false,
        look: false,
        launcher: false,
        vacated: None,
    };
}

/// The dispatchers of this database shall look at their timers.
pub fn dispatchers_on_commit() {
    at_commit(|pending| pending.dispatchers = true);
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
        // A prepared transaction is committed by another session: the safety net finds what it changed.
        register_xact_callback(PgXactCallbackEvent::Prepare, forget);
    }
    PENDING.set(pending);
}

fn deliver() {
    let pending = PENDING.replace(Pending::NOTHING);
    let database = pg::my_database();
    if pending.dispatchers {
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
