//! What the workers of a database have in common: where they work, and when they exit.

use crate::pg::transaction::Failure;
use crate::pg::{time, transaction};
use crate::runtime::shared::{self, Exit, WorkerKind, WorkerState};
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

/// Why a transaction of a worker did not commit.
pub enum Interruption {
    /// There is a reason to leave the database.
    Exit(Exit),
    /// The transaction was rolled back.
    Failed(Failure),
}

impl WorkerContext {
    pub fn new(
        slot: usize,
        kind: WorkerKind,
        database: pg_sys::Oid,
        database_name: String,
    ) -> WorkerContext {
        WorkerContext {
            slot,
            database_name,
            kind,
            database,
            extension: None,
        }
    }

    /// Does a command need the database without connections, or do the settings exclude the database?
    pub fn must_leave(&self) -> bool {
        shared::is_vacated(self.database)
            || !settings::enabled()
            || !settings::serves_database(&self.database_name)
    }

    pub fn report(&self, state: WorkerState, sleep: Duration) {
        let sleep = i64::try_from(sleep.as_micros()).unwrap_or(i64::MAX / 2);
        let wakes_at = time::to_micros(time::now()).saturating_add(sleep);
        // A worker that has not found the extension yet stays in the state Starting.
        if self.extension.is_some() {
            shared::report_state(self.slot, state, wakes_at);
        }
    }

    /// Runs `body` in a transaction, as the engine, if the extension is still there.
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
            // A library does not change while a process has it.
            if known.is_none() {
                installation::check_version();
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
            // In this order: the launcher starts the other workers when it sees that the first one serves.
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
        // One transaction may have dropped and created the extension: the launcher looks again.
        Exit::Asked
    }
}
