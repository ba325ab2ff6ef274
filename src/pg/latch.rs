//! Sleeping and being woken.

use pgrx::{check_for_interrupts, pg_sys};
use std::ptr;
use std::time::Duration;

/// Another process's latch, as a value that fits into shared memory.
///
/// Process latches live in shared memory and outlive their processes. To set the latch of a process that has ended
/// wakes no process, or another one that has taken over its slot and finds nothing to do: both are harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatchRef(*mut pg_sys::Latch);

impl LatchRef {
    pub const NONE: LatchRef = LatchRef(ptr::null_mut());

    pub fn mine() -> Self {
        // SAFETY: a variable that is set once, when the process starts.
        LatchRef(unsafe { pg_sys::MyLatch })
    }

    pub fn set(self) {
        if !self.0.is_null() {
            // SAFETY: the latch is in shared memory, which is mapped at the same address in every process.
            unsafe { pg_sys::SetLatch(self.0) }
        }
    }
}

/// Sleeps until `timeout` has passed, the latch is set or a signal arrives. Returns at once if the latch is set
/// already. Ends the process when the postmaster dies or a termination is pending.
pub fn wait(timeout: Duration) {
    // WaitLatch counts whole milliseconds. The fraction of a millisecond that remains is slept through: too short for a
    // wake-up to matter, and without it a worker would wake before the instant and have to sleep again.
    let millis = timeout.as_millis().min(i32::MAX as u128) as std::ffi::c_long;
    let rest = Duration::from_micros(u64::from(timeout.subsec_micros() % 1000));
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    // SAFETY: a process may wait for its own latch and reset it.
    unsafe {
        let event = pg_sys::WaitLatch(
            pg_sys::MyLatch,
            events as i32,
            millis,
            pg_sys::PG_WAIT_EXTENSION,
        );
        if event as u32 & pg_sys::WL_LATCH_SET == 0 {
            std::thread::sleep(rest);
        }
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
    check_for_interrupts!();
}
