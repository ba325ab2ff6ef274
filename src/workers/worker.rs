//! What the workers of a database have in common: where they work, and when they exit.

use crate::pg::transaction::Failure;
use crate::pg::{time, transaction};
use crate::runtime::shared::{self, Exit, Reservation, WorkerKind, WorkerState};
use crate::runtime::{engine, installation, settings};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::CStr;
use std::time::Duration;

/// A worker and the database that it serves.
pub struct WorkerContext {
    pub slot: usize,
    pub database_name: String,
    kind: WorkerKind,
    database: pg_sys::Oid,
    /// The extension that the worker serves, once it has found one.
    extension: Option<pg_sys::Oid>,
}

/// Why a transaction of a worker did not come to its end.
pub enum Interruption {
    /// There is a reason to leave the database.
    Exit(Exit),
    /// The transaction was rolled back.
    Failed(Failure),
}

/// Connects to the database that the slot is reserved for, serves it, and says why it leaves.
pub fn main(reservation: Reservation) {
    let Some((database, kind)) = shared::occupy_slot(reservation) else {
        return;
    };
    let slot = reservation.slot;
    // SAFETY: called once, at the start of a background worker.
    unsafe {
        pg_sys::before_shmem_exit(Some(leave_slot), pg_sys::Datum::from(slot));
        pg_sys::BackgroundWorkerInitializeConnectionByOid(database, pg_sys::InvalidOid, 0);
    }
    pin_settings(kind);
    let mut context = WorkerContext {
        slot,
        database_name: database_name(database),
        kind,
        database,
        extension: None,
    };
    let exit = match kind {
        WorkerKind::Dispatcher(number) => super::dispatcher::serve(&mut context, number),
        WorkerKind::Maintenance => super::maintenance::serve(&mut context),
    };
    shared::explain_exit(slot, exit);
}

#[pg_guard]
unsafe extern "C-unwind" fn leave_slot(_code: i32, slot: pg_sys::Datum) {
    shared::leave_slot(slot.value());
}

/// What ALTER DATABASE or ALTER ROLE may have set otherwise, and our queries depend on.
fn pin_settings(kind: WorkerKind) {
    let pinned: [(&CStr, &CStr); 8] = [
        // Names and operators mean pg_catalog's.
        (c"search_path", c"pg_catalog, pg_temp"),
        // A definition is read after its timer is locked, and must then be seen as it is, not as it was.
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
                // To truncate a partition takes an exclusive lock: not at the price that sessions queue up behind it.
                WorkerKind::Maintenance => c"1s",
            },
        ),
    ];
    for (name, value) in pinned {
        // SAFETY: both texts end with a zero byte.
        unsafe {
            pg_sys::SetConfigOption(
                name.as_ptr(),
                value.as_ptr(),
                pg_sys::GucContext::PGC_SUSET,
                pg_sys::GucSource::PGC_S_OVERRIDE,
            );
        }
    }
}

/// Constant while the worker is connected: renaming a database sends its workers away first.
fn database_name(database: pg_sys::Oid) -> String {
    // SAFETY: the server returns a text that ends with a zero byte, or NULL.
    transaction::run(c"pg_recur worker", move || unsafe {
        let name = pg_sys::get_database_name(database);
        match name.is_null() {
            true => String::new(),
            false => CStr::from_ptr(name).to_string_lossy().into_owned(),
        }
    })
    .unwrap_or_default()
}

impl WorkerContext {
    /// Does a command need the database without connections, or do the settings say that it is not served?
    pub fn must_leave(&self) -> bool {
        shared::is_vacated(self.database)
            || !settings::enabled()
            || !settings::serves_database(&self.database_name)
    }

    pub fn report(&self, state: WorkerState, sleep: Duration) {
        let sleep = i64::try_from(sleep.as_micros()).unwrap_or(i64::MAX / 2);
        let wakes_at = time::to_micros(time::now()).saturating_add(sleep);
        // Until it has found the extension, it is only starting.
        if self.extension.is_some() {
            shared::report_state(self.slot, state, wakes_at);
        }
    }

    /// One transaction as the engine. It is not begun where the extension is gone.
    pub fn transaction<R>(
        &mut self,
        activity: &CStr,
        body: impl FnOnce() -> R + std::panic::UnwindSafe,
    ) -> Result<R, Interruption> {
        let known = self.extension;
        let outcome = transaction::run(activity, move || {
            let found = installation::find()?.extension;
            if known.is_some_and(|known| known != found) {
                return None;
            }
            engine::become_engine_until_commit();
            Some((found, body()))
        });
        let outcome = outcome.inspect_err(|_| installation::forget());
        let Some((extension, result)) = outcome.map_err(Interruption::Failed)? else {
            return Err(Interruption::Exit(self.exit_without_extension()));
        };
        if self.extension.replace(extension).is_none() {
            log!(
                "pg_recur {}: started database={:?}",
                self.kind.name(),
                self.database_name
            );
            // In this order: the launcher starts the others when it sees that the first one serves.
            self.report(WorkerState::Working, Duration::ZERO);
            shared::wake_launcher();
        }
        Ok(result)
    }

    fn exit_without_extension(&self) -> Exit {
        if self.extension.is_none() {
            return Exit::NothingToDo;
        }
        let name = self.kind.name();
        log!(
            "pg_recur {name}: the extension is gone, leaving database={:?}",
            self.database_name
        );
        // It may have been dropped and created anew in one transaction: the launcher looks again.
        Exit::Asked
    }
}
