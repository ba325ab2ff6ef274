//! The CPU time of this process.

use chrono::TimeDelta;

/// What this process has spent on a CPU so far.
pub fn time() -> TimeDelta {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is valid; after an error the time is still zero.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    TimeDelta::seconds(time.tv_sec) + TimeDelta::nanoseconds(time.tv_nsec)
}
