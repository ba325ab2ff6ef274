//! A worker of one database, from start to exit.

use super::context::WorkerContext;
use super::{maintenance, service};
use crate::pg::query::queries;
use crate::pg::{catalog, compat, transaction};
use crate::runtime::shared::{self, Reservation, Task, WorkerKind};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::{CStr, CString};

queries! {
    CHANGED_SETTINGS = "install/queries/changed_settings.sql" ();
}

/// Connects to the database that the slot is reserved for, serves it, and says why it leaves.
pub fn main(reservation: Reservation) {
    let Some(Task {
        database,
        kind,
        handover,
    }) = shared::occupy_slot(reservation)
    else {
        return;
    };
    let slot = reservation.slot;
    // SAFETY: a background worker connects once, at its start; the callback takes a slot, and must be registered before
    // an error can end the process.
    unsafe {
        pg_sys::before_shmem_exit(Some(leave_slot), pg_sys::Datum::from(slot));
        pg_sys::BackgroundWorkerInitializeConnectionByOid(database, pg_sys::InvalidOid, 0);
    }
    ignore_settings_of_database();
    pin_settings(kind);
    let mut context = WorkerContext::new(
        slot,
        kind,
        database,
        database_name(database),
        handover.is_some(),
    );
    let exit = match kind {
        WorkerKind::Dispatcher(number) => service::serve(&mut context, number, handover),
        WorkerKind::Maintenance => maintenance::serve(&mut context),
    };
    shared::explain_exit(slot, exit);
}

#[pg_guard]
extern "C-unwind" fn leave_slot(_code: i32, slot: pg_sys::Datum) {
    shared::leave_slot(slot.value());
}

/// A worker has the settings of the server. Those that a role may set by itself, and the owner of a database for all of
/// its sessions, could stop a worker or change what it does.
fn ignore_settings_of_database() {
    // The next transaction needs these two.
    set(c"role", c"none");
    if let Some(transaction_timeout) = compat::TRANSACTION_TIMEOUT {
        set(transaction_timeout, c"0");
    }
    let changed: Result<Vec<(String, String)>, _> = transaction::run(c"pg_recur worker", || {
        CHANGED_SETTINGS.with(|query| query.rows(&[], |row| (row.required(1), row.required(2))))
    });
    let changed = changed.unwrap_or_else(|failure| {
        warning!("pg_recur worker: settings can't be read: {failure}");
        Vec::new()
    });
    for (name, value) in changed {
        let (Ok(text), Ok(value)) = (CString::new(name.as_str()), CString::new(value)) else {
            continue;
        };
        // In a transaction, so that a value which the server refuses does not end the worker.
        let outcome = transaction::run(c"pg_recur worker", move || set(&text, &value));
        if let Err(failure) = outcome {
            warning!("pg_recur worker: setting {name} of the database stays: {failure}");
        }
    }
}

/// Fixes the settings that the queries depend on, whatever the server's configuration says.
fn pin_settings(kind: WorkerKind) {
    let pinned: [(&CStr, &CStr); 8] = [
        // Names and operators are those of pg_catalog.
        (c"search_path", c"pg_catalog, pg_temp"),
        // A definition is read after its timer has been locked: with its latest committed values.
        (c"default_transaction_isolation", c"read committed"),
        (c"default_transaction_read_only", c"off"),
        // Queries are planned once, for tables that may be empty then and full later.
        (c"plan_cache_mode", c"force_generic_plan"),
        (c"enable_seqscan", c"off"),
        (c"enable_bitmapscan", c"off"),
        (c"jit", c"off"),
        (
            c"lock_timeout",
            match kind {
                WorkerKind::Dispatcher(_) => c"0",
                // Sessions would queue up behind a worker that waits for the exclusive lock of TRUNCATE.
                WorkerKind::Maintenance => c"1s",
            },
        ),
    ];
    for (name, value) in pinned {
        set(name, value);
    }
}

/// Sets a value that neither a reload nor a reset changes.
fn set(name: &CStr, value: &CStr) {
    // SAFETY: both texts end with a zero byte; the server raises an error for an invalid setting.
    unsafe {
        pg_sys::SetConfigOption(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_SUSET,
            pg_sys::GucSource::PGC_S_OVERRIDE,
        );
    }
}

/// The name is constant while the worker is connected: ALTER DATABASE … RENAME sends the workers away first.
fn database_name(database: pg_sys::Oid) -> String {
    let name = transaction::run(c"pg_recur worker", move || catalog::database_name(database));
    name.ok().flatten().unwrap_or_default()
}
