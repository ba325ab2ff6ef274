//! What the workers of a database have in common: where they are posted, and when they leave.

use crate::guc;
use crate::pg::{installation, role, time, transaction};
use crate::shared::{self, Departure, Duty, WorkerState};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::CStr;
use std::time::Duration;

/// A worker's place in a database.
pub struct Post {
    pub slot: usize,
    pub database_name: String,
    duty: Duty,
    database: pg_sys::Oid,
    /// The extension that it serves, once it has found one.
    installation: Option<pg_sys::Oid>,
}

/// A reason to leave that turned up inside a transaction.
pub struct Departs(pub Departure);

/// Connects to the database that the slot is reserved for, serves it, and says why it leaves.
pub fn main(slot: usize) {
    let (database, duty) = shared::assignment(slot);
    unsafe {
        pg_sys::BackgroundWorkerInitializeConnectionByOid(database, pg_sys::InvalidOid, 0);
        pg_sys::before_shmem_exit(Some(leave_slot), pg_sys::Datum::from(slot));
    }
    pin_settings(duty);
    shared::occupy_slot(slot);
    let mut post = Post {
        slot,
        database_name: database_name(database),
        duty,
        database,
        installation: None,
    };
    let departure = match duty {
        Duty::Dispatcher(number) => super::dispatcher::serve(&mut post, number),
        Duty::Maintenance => super::maintenance::serve(&mut post),
    };
    shared::explain_departure(slot, departure);
}

#[pg_guard]
unsafe extern "C-unwind" fn leave_slot(_code: i32, slot: pg_sys::Datum) {
    shared::leave_slot(slot.value());
}

/// What ALTER DATABASE or ALTER ROLE may have set otherwise, and our queries depend on.
fn pin_settings(duty: Duty) {
    let pinned: [(&CStr, &CStr); 7] = [
        // Names and operators mean pg_catalog's.
        (c"search_path", c"pg_catalog, pg_temp"),
        // A definition is read after its timer is locked, and must then be seen as it is, not as it was.
        (c"default_transaction_isolation", c"read committed"),
        // Our queries are planned once, for tables that may be empty then and full later. Left to itself, the planner makes a
        // new plan for most wake-ups, which takes longer than all the rest of them.
        (c"plan_cache_mode", c"force_generic_plan"),
        (c"enable_seqscan", c"off"),
        (c"enable_bitmapscan", c"off"),
        (c"jit", c"off"),
        (
            c"lock_timeout",
            match duty {
                Duty::Dispatcher(_) => c"0",
                // To truncate a partition it needs it for itself: not at the price that others queue up behind it.
                Duty::Maintenance => c"1s",
            },
        ),
    ];
    for (name, value) in pinned {
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

/// Constant while we are connected: renaming a database sends its workers away first.
fn database_name(database: pg_sys::Oid) -> String {
    transaction::run(c"pg_recur worker", move || unsafe {
        let name = pg_sys::get_database_name(database);
        if name.is_null() {
            String::new()
        } else {
            CStr::from_ptr(name).to_string_lossy().into_owned()
        }
    })
    .unwrap_or_default()
}

impl Post {
    /// Somebody needs the database for himself, or the settings say that it is not to be served.
    pub fn is_to_be_left(&self) -> bool {
        shared::is_vacated(self.database)
            || !guc::enabled()
            || !guc::serves_database(&self.database_name)
    }

    pub fn report(&self, state: WorkerState, sleep: Duration) {
        let sleep = i64::try_from(sleep.as_micros()).unwrap_or(i64::MAX / 2);
        let wakes_at = time::to_micros(time::now()).saturating_add(sleep);
        // Until it has found the extension, it is only starting.
        if self.installation.is_some() {
            shared::report_state(self.slot, state, wakes_at);
        }
    }

    /// One transaction as the owner of the extension's tables. It is not begun where the extension is gone.
    pub fn transaction<R>(
        &mut self,
        activity: &CStr,
        body: impl FnOnce() -> R + std::panic::UnwindSafe,
    ) -> Result<Result<R, Departs>, transaction::Failure> {
        let installation = self.installation;
        let outcome = transaction::run(activity, move || {
            let found = installation::find()?;
            if installation.is_some_and(|known| known != found.extension) {
                return None;
            }
            role::become_owner_until_commit(&found);
            Some((found.extension, body()))
        })
        .inspect_err(|_| installation::forget())?;
        let Some((extension, result)) = outcome else {
            let Some(_) = self.installation else {
                return Ok(Err(Departs(Departure::NothingToDo)));
            };
            log!(
                "pg_recur {}: the extension is gone, leaving database={:?}",
                self.duty.name(),
                self.database_name
            );
            // It may have been dropped and created anew in one transaction: the launcher looks again.
            return Ok(Err(Departs(Departure::Asked)));
        };
        if self.installation.replace(extension).is_none() {
            log!(
                "pg_recur {}: started database={:?}",
                self.duty.name(),
                self.database_name
            );
            // In this order: the launcher starts the others when it sees that the first one serves.
            self.report(WorkerState::Working, Duration::ZERO);
            shared::wake_launcher();
        }
        Ok(Ok(result))
    }
}
