//! A limit to waiting for locks, for a part of a transaction.

use pgrx::pg_sys;

/// While it exists, no lock is waited for longer than this, nor longer than `lock_timeout` says. (Not through `SET
/// LOCAL`, which would take longer than most batches.)
pub struct LockTimeout {
    outside: i32,
}

impl LockTimeout {
    pub fn of_millis(millis: i32) -> LockTimeout {
        let outside = unsafe { pg_sys::LockTimeout };
        let shorter = if outside > 0 {
            outside.min(millis)
        } else {
            millis
        };
        unsafe { pg_sys::LockTimeout = shorter };
        LockTimeout { outside }
    }
}

impl Drop for LockTimeout {
    fn drop(&mut self) {
        unsafe { pg_sys::LockTimeout = self.outside };
    }
}
