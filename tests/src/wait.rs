//! Waiting for a condition, never for a time.

use crate::cluster::Cluster;
use crate::session::Session;
use std::thread;
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
        thread::sleep(PAUSE);
    }
}

/// Runs `second` in a session of its own, where it must wait for a lock that the caller holds. `meanwhile` runs as soon
/// as it waits, and gives the lock up.
#[track_caller]
pub fn overtake<T: Send>(
    cluster: &Cluster,
    database: &str,
    second: impl FnOnce(&mut Session) -> T + Send,
    meanwhile: impl FnOnce(),
) -> T {
    let mut session = cluster.session(database);
    let mut observer = cluster.session(database);
    let pid = session.pid();
    // Should the caller fail, the lock is not given up, and this session must not wait for ever.
    session.batch("SET lock_timeout = '2min'");
    thread::scope(|scope| {
        let second = scope.spawn(move || second(&mut session));
        eventually("the second waits for the first", || {
            observer.is_blocked(pid)
        });
        meanwhile();
        second.join().expect("the second session")
    })
}
