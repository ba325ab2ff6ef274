//! Pauses after failures.

use std::time::Duration;

/// Pauses that double from one failure to the next, and start over after a success.
#[derive(Clone, Copy)]
pub struct Backoff {
    next: Duration,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(30);

    pub fn new() -> Self {
        Backoff { next: Self::FIRST }
    }

    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(Self::LONGEST);
        pause
    }

    pub fn reset(&mut self) {
        self.next = Self::FIRST;
    }
}
