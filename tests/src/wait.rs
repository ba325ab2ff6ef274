//! Waiting for a condition, never for a time.

use std::time::{Duration, Instant};

/// Long enough for a machine that is busy with something else; a passing test never waits for it.
const DEADLINE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// Returns as soon as `condition` holds; fails the test when it does not within the deadline.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    eventually_some(what, || condition().then_some(()))
}

/// Returns the first `Some`.
#[track_caller]
pub fn eventually_some<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = attempt() {
            return value;
        }
        assert!(
            started.elapsed() < DEADLINE,
            "did not happen within {DEADLINE:?}: {what}"
        );
        std::thread::sleep(PAUSE);
    }
}
