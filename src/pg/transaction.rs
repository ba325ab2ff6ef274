//! One transaction of a background worker.

use super::catch::{self, ServerError};
use super::identity::Identity;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::*;
use std::panic::{AssertUnwindSafe, UnwindSafe};

/// Why a transaction or subtransaction was rolled back.
#[derive(Debug)]
pub struct Failure {
    pub sqlstate: String,
    pub message: String,
}

/// Calls back at the end of every top-level transaction of this process that commits or is prepared, when its changes
/// are visible, other processes have its invalidations, and its locks are released.
pub fn after_commit(callback: fn()) {
    let argument = (callback as *mut ()).cast();
    // SAFETY: the callback lives as long as the process, and takes the argument for what it is.
    unsafe { pg_sys::RegisterResourceReleaseCallback(Some(released), argument) };
}

/// # Safety
/// `callback` must be the argument that [`after_commit`] registers.
#[pg_guard]
unsafe extern "C-unwind" fn released(
    phase: pg_sys::ResourceReleasePhase::Type,
    is_commit: bool,
    is_top_level: bool,
    callback: *mut std::ffi::c_void,
) {
    if is_commit
        && is_top_level
        && phase == pg_sys::ResourceReleasePhase::RESOURCE_RELEASE_AFTER_LOCKS
    {
        // SAFETY: the argument is a function pointer of this type.
        let callback = unsafe { std::mem::transmute::<*mut std::ffi::c_void, fn()>(callback) };
        callback();
    }
}

/// Runs `body` in a transaction of its own and commits it. An error or a panic rolls the transaction back and is
/// returned as a value: bad data must not end a worker. If `body` changes the role, the process has its former role
/// again afterwards.
///
/// `BackgroundWorker::transaction` of pgrx is not used: after an error it leaves the transaction open.
pub fn run<R>(
    activity: &std::ffi::CStr,
    body: impl FnOnce() -> R + UnwindSafe,
) -> Result<R, Failure> {
    let identity = Identity::current();
    // SAFETY: a background worker that is in no transaction begins one, as the main loop of a session does.
    unsafe {
        pg_sys::SetCurrentStatementStartTimestamp();
        pg_sys::StartTransactionCommand();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        pg_sys::pgstat_report_activity(pg_sys::BackendState::STATE_RUNNING, activity.as_ptr());
    }
    let mut has_written = false;
    let outcome = PgTryBuilder::new(AssertUnwindSafe(|| {
        let result = body();
        // SAFETY: the snapshot that was pushed above is the active one, and the transaction is the one that was begun.
        unsafe {
            has_written = pg_sys::GetTopTransactionIdIfAny() != pg_sys::InvalidTransactionId;
            pg_sys::PopActiveSnapshot();
            // Inside the guard, because the commit can still fail: a deferred constraint, a full disk.
            pg_sys::CommitTransactionCommand();
        }
        Ok(result)
    }))
    .catch_others(|error| Err(Failure::from(&error)))
    .catch_rust_panic(|error| Err(Failure::from(&error)))
    .execute();
    if outcome.is_err() {
        // SAFETY: rolls back the transaction with all subtransactions, and may be called in any state.
        unsafe { pg_sys::AbortOutOfAnyTransaction() };
    }
    // A rollback restores the role, a commit does not.
    identity.assume();
    // SAFETY: outside of a transaction, statistics and activity may be reported.
    unsafe {
        // Autovacuum and pg_stat_* must see what the transaction did before the worker exits. A transaction that wrote
        // nothing is reported with the next one that did: the report takes as long as the look at an index.
        if has_written || outcome.is_err() {
            pg_sys::pgstat_report_stat(true);
        }
        pg_sys::pgstat_report_activity(pg_sys::BackendState::STATE_IDLE, std::ptr::null());
    }
    outcome
}

/// Does something in the transaction that is open, and returns an error as a value: the caller then rolls the
/// transaction back. SPI finds an active snapshot.
pub fn attempt<R>(body: impl FnOnce() -> R + UnwindSafe) -> Result<R, Failure> {
    PgTryBuilder::new(AssertUnwindSafe(|| {
        // SAFETY: a transaction is open; after an error, its end drops the snapshot.
        unsafe {
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
            let result = body();
            pg_sys::PopActiveSnapshot();
            Ok(result)
        }
    }))
    .catch_others(|error| Err(Failure::from(&error)))
    .catch_rust_panic(|error| Err(Failure::from(&error)))
    .execute()
}

impl From<&CaughtError> for Failure {
    fn from(error: &CaughtError) -> Failure {
        let report = match error {
            CaughtError::PostgresError(report) | CaughtError::ErrorReport(report) => report,
            CaughtError::RustPanic { ereport, .. } => ereport,
        };
        Failure {
            sqlstate: catch::sqlstate(report.sql_error_code() as i32),
            message: report.message().to_owned(),
        }
    }
}

impl From<Failure> for Box<ServerError> {
    fn from(failure: Failure) -> Self {
        ServerError::new(&failure.sqlstate, failure.message)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{} (SQLSTATE {})", self.message, self.sqlstate)
    }
}

impl Failure {
    /// Did the transaction wait too long for a lock?
    pub fn is_lock_timeout(&self) -> bool {
        self.sqlstate == "55P03"
    }

    /// Is a row at fault, rather than the circumstances: a transaction that must be repeated, missing resources, a lock
    /// timeout, an operator, the system?
    pub fn is_about_data(&self) -> bool {
        const CIRCUMSTANCES: [&str; 5] = ["40", "53", "55", "57", "58"];
        !CIRCUMSTANCES
            .iter()
            .any(|class| self.sqlstate.starts_with(class))
    }
}
