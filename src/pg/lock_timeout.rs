//! A limit to waiting for locks, for a part of a transaction.

use pgrx::pg_sys;

/// While the value exists, waiting for a lock ends after this time, or after `lock_timeout` if that is shorter. The
/// variable is set directly, because `SET LOCAL` takes longer than most batches.
pub struct LockTimeout {
    outside: i32,
}

impl LockTimeout {
    pub fn of_millis(millis: i32) -> LockTimeout {
        // SAFETY: a variable of this process, which has one thread.
        let outside = unsafe { pg_sys::LockTimeout };
        let shorter = if outside > 0 {
            outside.min(millis)
        } else {
            millis
        };
        // SAFETY: lock waits read the variable when they begin, and none has begun.
        unsafe { pg_sys::LockTimeout = shorter };
        LockTimeout { outside }
    }
}

impl Drop for LockTimeout {
    fn drop(&mut self) {
        // SAFETY: lock waits read the variable when they begin, and none has begun.
        unsafe { pg_sys::LockTimeout = self.outside };
    }
}
