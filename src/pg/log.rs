//! Lines of the server's log that no client sees.

use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::c_void;

/// How much a line matters. In a session all lines that are written are of level LOG: a client hears no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Written where `log_min_messages` is debug1 or lower.
    Debug,
    Log,
    Warning,
}

/// One statement writes this many lines; those of further rows are of level [`Level::Debug`].
const MOST_IN_A_STATEMENT: u32 = 10;

/// Are lines of this level written?
pub fn admits(level: Level) -> bool {
    // SAFETY: a variable of this process.
    let least = unsafe { pg_sys::log_min_messages };
    level != Level::Debug || least <= PgLogLevel::DEBUG1 as i32
}

/// Writes a line, which is made only where it is written.
pub fn write(level: Level, line: impl FnOnce() -> String) {
    if !admits(level) {
        return;
    }
    let is_worker = is_worker();
    let severity = match level {
        Level::Debug if is_worker => PgLogLevel::DEBUG1,
        Level::Warning if is_worker => PgLogLevel::WARNING,
        _ => PgLogLevel::LOG_SERVER_ONLY,
    };
    report(severity, line());
}

/// Writes a line about one of the rows that a statement writes: a statement that writes thousands of rows does not
/// flood the log.
pub fn write_limited(line: impl FnOnce() -> String) {
    thread_local! {
        static WRITTEN: PerStatement = const { PerStatement::new() };
    }
    match WRITTEN.with(PerStatement::count) {
        0..MOST_IN_A_STATEMENT => write(Level::Log, line),
        number => {
            if number == MOST_IN_A_STATEMENT {
                let more = "pg_recur: more actions of this statement are logged at debug1 only";
                write(Level::Log, || more.to_owned());
            }
            write(Level::Debug, line);
        }
    }
}

/// How often something has happened in the current statement of the client.
pub struct PerStatement(Cell<(pg_sys::TimestampTz, u32)>);

impl PerStatement {
    pub const fn new() -> PerStatement {
        PerStatement(Cell::new((0, 0)))
    }

    /// Counts one more, and returns how many there were before.
    pub fn count(&self) -> u32 {
        // SAFETY: reads a variable of this process.
        let statement = unsafe { pg_sys::GetCurrentStatementStartTimestamp() };
        let (of, before) = self.0.get();
        let before = if of == statement { before } else { 0 };
        self.0.set((statement, before.saturating_add(1)));
        before
    }
}

fn is_worker() -> bool {
    // SAFETY: a variable that is set once, when the process starts.
    unsafe { !pg_sys::MyBgworkerEntry.is_null() }
}

/// Reports without the statement that the client sent: the server adds it to lines of level LOG, and it may hold a
/// payload.
fn report(severity: PgLogLevel, line: String) {
    extern "C-unwind" fn hide(_: *mut c_void) {
        // SAFETY: context callbacks run while a report is being assembled, which both functions require.
        unsafe {
            pg_sys::errhidestmt(true);
            pg_sys::errhidecontext(true);
        }
    }
    // SAFETY: the process has one thread. The callback is removed before the function returns; the handler of an error
    // restores the stack. Interrupts wait, so that a request to cancel is handled later and outside of this frame.
    unsafe {
        let mut callback = pg_sys::ErrorContextCallback {
            previous: pg_sys::error_context_stack,
            callback: Some(hide),
            arg: std::ptr::null_mut(),
        };
        pg_sys::error_context_stack = &raw mut callback;
        pg_sys::InterruptHoldoffCount += 1;
        let code = PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION;
        ErrorReport::new(code, line, "pg_recur").report(severity);
        pg_sys::InterruptHoldoffCount -= 1;
        pg_sys::error_context_stack = callback.previous;
    }
}
