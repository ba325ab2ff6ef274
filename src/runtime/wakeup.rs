//! Wake-ups at commit: the workers learn what this transaction has changed.
//!
//! A latch set before the commit would wake a dispatcher that can't see the change yet. A latch set before the server
//! has sent the invalidations of the transaction would wake one that goes by what it has cached, and sleeps again. A
//! transaction that rolls back wakes no worker, and one that changes a thousand actions sets each latch once.

use super::shared::{self, Wakeup};
use crate::pg::prepared::Name;
use crate::pg::{self, time, transaction};
use pgrx::{PgXactCallbackEvent, pg_sys, register_xact_callback};
use std::cell::{Cell, LazyCell};

thread_local! {
    static PENDING: Cell<Pending> = const { Cell::new(Pending::NOTHING) };
    /// Is this transaction committed, and has not delivered yet?
    static IS_COMMITTED: Cell<bool> = const { Cell::new(false) };
    static DELIVERY: LazyCell<()> = LazyCell::new(|| transaction::after_commit(deliver));
    /// The name of the transaction that is being prepared.
    static PREPARED_AS: Cell<Option<Name>> = const { Cell::new(None) };
}

#[derive(Clone, Copy)]
struct Pending {
    registered: bool,
    /// A change concerns all workers of this database.
    workers: bool,
    /// What the dispatchers must look at again.
    wakeup: Wakeup,
    /// The extension was created: the launcher must look at this database.
    look: bool,
    /// A database was created: the launcher must read the list of databases.
    launcher: bool,
    /// The workers may return to this database when the transaction ends, by commit or rollback.
    vacated: Option<pg_sys::Oid>,
}

impl Pending {
    const NOTHING: Pending = Pending {
        registered: false,
        workers: false,
        wakeup: Wakeup::NOTHING,
        look: false,
        launcher: false,
        vacated: None,
    };
}

/// The workers of this database look whether the extension is still there.
pub fn workers_on_commit() {
    at_commit(|pending| pending.workers = true);
}

/// The dispatchers of this database look at a timer that is due then.
pub fn due_on_commit(due_at: pg_sys::TimestampTz) {
    publish_on_commit(Wakeup {
        due_at: Some(due_at),
        ..Wakeup::NOTHING
    });
}

/// The first dispatcher of this database announces a dispatch that becomes available then, or did so before this
/// transaction committed.
pub fn available_on_commit(available_at: pg_sys::TimestampTz) {
    publish_on_commit(Wakeup {
        available_at: Some(available_at),
        ..Wakeup::NOTHING
    });
}

/// Notes the name under which this transaction may be prepared.
pub fn name_if_prepared(name: Name) {
    PREPARED_AS.set(Some(name));
}

/// A prepared transaction with a wake-up is being committed. The wake-up itself is lost: the dispatchers look at
/// everything.
pub fn anything_on_commit() {
    publish_on_commit(Wakeup::EVERYTHING);
}

/// The first dispatcher of this database looks whether there is something to run in the database itself, or to stop.
pub fn work_on_commit() {
    publish_on_commit(Wakeup {
        has_work: true,
        ..Wakeup::NOTHING
    });
}

fn publish_on_commit(wakeup: Wakeup) {
    at_commit(|pending| pending.wakeup.add(wakeup));
}

/// The launcher looks whether this database needs a dispatcher.
pub fn look_on_commit() {
    at_commit(|pending| pending.look = true);
}

/// The launcher reads the list of databases.
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
        DELIVERY.with(|delivery| **delivery);
        register_xact_callback(PgXactCallbackEvent::Commit, || IS_COMMITTED.set(true));
        register_xact_callback(PgXactCallbackEvent::Abort, forget);
        // COMMIT PREPARED is another command, perhaps of another session: hooks.rs sees it.
        register_xact_callback(PgXactCallbackEvent::PrePrepare, mark);
        register_xact_callback(PgXactCallbackEvent::Prepare, forget);
    }
    PENDING.set(pending);
}

fn deliver() {
    if !IS_COMMITTED.replace(false) {
        return;
    }
    let mut pending = PENDING.replace(Pending::NOTHING);
    let database = pg::my_database();
    if pending.workers {
        let now = time::now_micros();
        pending.wakeup.add(Wakeup {
            due_at: Some(now),
            ..Wakeup::NOTHING
        });
        shared::publish(database, pending.wakeup);
        shared::wake_workers_of(database);
    } else if pending.wakeup != Wakeup::NOTHING {
        shared::publish(database, pending.wakeup);
        shared::wake_dispatchers_of(database, pending.wakeup);
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

/// The session that commits the prepared transaction sees from the mark that there is a wake-up.
fn mark() {
    let pending = PENDING.get();
    let has_wakeup = pending.workers || pending.wakeup != Wakeup::NOTHING;
    if let (true, Some(name)) = (has_wakeup, PREPARED_AS.get()) {
        name.mark();
    }
}

fn forget() {
    let pending = PENDING.replace(Pending::NOTHING);
    if let Some(database) = pending.vacated {
        shared::reoccupy(database);
    }
}
