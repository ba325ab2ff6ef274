//! What the workers of a database have in common: where they work, and when they exit.

use crate::pg::transaction::Failure;
use crate::pg::{time, transaction};
use crate::runtime::shared::{self, Exit, WorkerKind, WorkerState};
use crate::runtime::{clock, engine, home, installation, settings};
use chrono::{DateTime, Utc};
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
    /// Goes on where another worker has left off: no news for the log.
    goes_on: bool,
    /// Why the database holds its fire, as the log says.
    logged_hold: Option<String>,
    /// An earlier worker has logged it.
    hold_is_known: bool,
}

/// Why a transaction of a worker did not commit.
pub enum Interruption {
    /// There is a reason to leave the database.
    Exit(Exit),
    /// Nothing fires by itself in this database: it is a test database, switched off, or a copy.
    Held,
    /// The transaction was rolled back.
    Failed(Failure),
}

impl WorkerContext {
    pub fn new(
        slot: usize,
        kind: WorkerKind,
        database: pg_sys::Oid,
        database_name: String,
        goes_on: bool,
    ) -> WorkerContext {
        WorkerContext {
            slot,
            database_name,
            kind,
            database,
            extension: None,
            goes_on,
            logged_hold: None,
            hold_is_known: false,
        }
    }

    pub fn kind(&self) -> WorkerKind {
        self.kind
    }

    pub fn database(&self) -> pg_sys::Oid {
        self.database
    }

    /// Does a command need the database without connections, or do the settings exclude the database?
    pub fn must_leave(&self) -> bool {
        shared::is_vacated(self.database)
            || !settings::enabled_on_server()
            || !settings::serves_database(&self.database_name)
    }

    /// The worker goes on where another one has left: what that one has logged is not logged again.
    pub fn follows_another(&mut self) {
        self.hold_is_known = true;
    }

    /// Says what the worker does from now on, and when something is due, as far as it knows.
    pub fn report(&self, state: WorkerState, sleep: Duration, next_instant: DateTime<Utc>) {
        let sleep = i64::try_from(sleep.as_micros()).unwrap_or(i64::MAX / 2);
        let wakes_at = time::to_micros(time::now()).saturating_add(sleep);
        // A worker that has not found the extension yet stays in the state Starting.
        if self.extension.is_some() {
            let next_at = time::to_micros(next_instant);
            shared::report_state(self.slot, state, wakes_at, next_at);
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
            let is_held = clock::is_for_tests() || !settings::enabled();
            if !is_held && home::may_fire() {
                return Some((found, Ok(body())));
            }
            Some((found, Err(home::hold().map(|hold| hold.to_string()))))
        });
        let outcome = outcome.inspect_err(|_| installation::forget());
        let Some((extension, result)) = outcome.map_err(Interruption::Failed)? else {
            return Err(Interruption::Exit(self.exit_without_extension()));
        };
        if self.extension.replace(extension).is_none() {
            if !self.goes_on {
                log!(
                    "pg_recur {}: started database={:?}",
                    self.kind.name(),
                    self.database_name
                );
            }
            // In this order: the launcher starts other dispatchers when it sees that the first one serves.
            self.report(WorkerState::Working, Duration::ZERO, DateTime::UNIX_EPOCH);
            shared::wake_launcher();
        }
        match result {
            Ok(result) => {
                self.logged_hold = None;
                self.hold_is_known = false;
                Ok(result)
            }
            Err(hold) => {
                self.log_hold(hold);
                Err(Interruption::Held)
            }
        }
    }

    /// Logs it once, and again when the reason is another one.
    fn log_hold(&mut self, hold: Option<String>) {
        // One worker logs it for all.
        if let Some(hold) = &hold
            && self.logged_hold.as_ref() != Some(hold)
            && !self.hold_is_known
            && self.kind == WorkerKind::Dispatcher(0)
        {
            warning!("pg_recur dispatcher: {hold} {}", home::REMEDY);
        }
        self.logged_hold = hold;
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
