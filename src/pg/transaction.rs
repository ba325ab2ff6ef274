//! One transaction of a background worker.

use pgrx::pg_sys;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::*;
use std::panic::{AssertUnwindSafe, UnwindSafe};

/// What a failed transaction left: it has been rolled back.
#[derive(Debug)]
pub struct Failure {
    pub sqlstate: String,
    pub message: String,
}

/// Runs `body` in a transaction of its own and commits it. An error or a panic inside rolls it back and comes out as a
/// value: a worker must not die of data. Whoever the process acted as inside, it is who it was again afterwards.
///
/// (`BackgroundWorker::transaction` of pgrx is not used: it leaves the transaction open on an error.)
pub fn run<R>(
    activity: &std::ffi::CStr,
    body: impl FnOnce() -> R + UnwindSafe,
) -> Result<R, Failure> {
    let (mut user, mut context) = (pg_sys::InvalidOid, 0);
    unsafe {
        pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
        pg_sys::SetCurrentStatementStartTimestamp();
        pg_sys::StartTransactionCommand();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        pg_sys::pgstat_report_activity(pg_sys::BackendState::STATE_RUNNING, activity.as_ptr());
    }
    let mut has_written = false;
    let outcome = PgTryBuilder::new(AssertUnwindSafe(|| {
        let result = body();
        unsafe {
            has_written = pg_sys::GetTopTransactionIdIfAny() != pg_sys::InvalidTransactionId;
            pg_sys::PopActiveSnapshot();
            // Inside the guard: a deferred constraint or a full disk can still fail here.
            pg_sys::CommitTransactionCommand();
        }
        Ok(result)
    }))
    .catch_others(|error| Err(Failure::from(&error)))
    .catch_rust_panic(|error| Err(Failure::from(&error)))
    .execute();
    unsafe {
        if outcome.is_err() {
            // Of whatever was open: a subtransaction inside it, too.
            pg_sys::AbortOutOfAnyTransaction();
        }
        // A rollback has done so already, a commit does not.
        pg_sys::SetUserIdAndSecContext(user, context);
        // What this transaction did must be seen by autovacuum and by pg_stat_* without waiting for our exit. That it
        // has looked and found nothing can wait until something is done: to report it takes as long as to look.
        if has_written || outcome.is_err() {
            pg_sys::pgstat_report_stat(true);
        }
        pg_sys::pgstat_report_activity(pg_sys::BackendState::STATE_IDLE, std::ptr::null());
    }
    outcome
}

impl From<&CaughtError> for Failure {
    fn from(error: &CaughtError) -> Failure {
        let report = match error {
            CaughtError::PostgresError(report) | CaughtError::ErrorReport(report) => report,
            CaughtError::RustPanic { ereport, .. } => ereport,
        };
        Failure {
            sqlstate: sqlstate_text(report.sql_error_code()),
            message: report.message().to_owned(),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{} (SQLSTATE {})", self.message, self.sqlstate)
    }
}

impl Failure {
    /// A lock was not to be had in time.
    pub fn is_lock_timeout(&self) -> bool {
        self.sqlstate == "55P03"
    }

    /// Is it the fault of a row, rather than of the circumstances? Those are: a transaction that must be repeated,
    /// resources that are missing, a lock that was not to be had, an operator, the system.
    pub fn is_about_data(&self) -> bool {
        const CIRCUMSTANCES: [&str; 5] = ["40", "53", "55", "57", "58"];
        !CIRCUMSTANCES
            .iter()
            .any(|class| self.sqlstate.starts_with(class))
    }
}

/// The five characters that an operator looks up.
fn sqlstate_text(code: PgSqlErrorCode) -> String {
    let mut packed = code as i32 as u32;
    let mut text = String::with_capacity(5);
    for _ in 0..5 {
        text.push(((packed & 0x3f) as u8 + b'0') as char);
        packed >>= 6;
    }
    text
}
