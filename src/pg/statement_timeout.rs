//! The server's timer for statements. Only the main loop of a session arms it by itself.

use pgrx::pg_sys;
use std::ffi::c_int;
use std::time::Duration;

/// `STATEMENT_TIMEOUT` of the server's list of timers, the same in all supported versions.
const STATEMENT_TIMEOUT: c_int = 3;

unsafe extern "C-unwind" {
    fn enable_timeout_after(timer: c_int, milliseconds: c_int);
    fn disable_timeout(timer: c_int, keeps_indicator: bool);
}

/// Cancels what runs after this time, until [`disarm`].
pub fn arm(after: Duration) {
    let milliseconds = c_int::try_from(after.as_millis()).unwrap_or(c_int::MAX);
    // SAFETY: the server has registered the timer when the process connected; both calls raise nothing.
    unsafe { enable_timeout_after(STATEMENT_TIMEOUT, milliseconds.max(1)) };
}

pub fn disarm() {
    // SAFETY: the server has registered the timer when the process connected; the call raises nothing.
    unsafe { disable_timeout(STATEMENT_TIMEOUT, false) };
}

/// What the session's own `statement_timeout` asks for.
pub fn of_session() -> Option<Duration> {
    // SAFETY: a variable of this process.
    let milliseconds = unsafe { pg_sys::StatementTimeout };
    u64::try_from(milliseconds)
        .ok()
        .filter(|milliseconds| *milliseconds > 0)
        .map(Duration::from_millis)
}
