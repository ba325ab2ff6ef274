//! Sleeping and being woken.

use pgrx::{check_for_interrupts, pg_sys};
use std::ptr;
use std::time::Duration;

/// Another process's latch, as a value that fits into shared memory.
///
/// Process latches live in shared memory and outlive their processes; setting the latch of a process that is
/// gone, or that reuses its slot, wakes nobody or wakes somebody for nothing: both are harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatchRef(*mut pg_sys::Latch);

impl LatchRef {
    pub const NONE: LatchRef = LatchRef(ptr::null_mut());

    pub fn mine() -> Self {
        LatchRef(unsafe { pg_sys::MyLatch })
    }

    pub fn set(self) {
        if !self.0.is_null() {
            unsafe { pg_sys::SetLatch(self.0) }
        }
    }
}

/// Sleeps until `timeout` has passed, the latch is set or a signal arrives. Returns at once when the latch
/// is already set. Ends the process when the postmaster dies or a termination is pending.
pub fn wait(timeout: Duration) {
    // WaitLatch counts whole milliseconds. What is left of one is slept through: nobody is kept waiting by it, and who
    // sleeps until an instant should not be late by it.
    let millis = timeout.as_millis().min(i32::MAX as u128) as std::ffi::c_long;
    let rest = Duration::from_micros(u64::from(timeout.subsec_micros() % 1000));
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
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
