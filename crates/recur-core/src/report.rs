//! What becomes of a running dispatch whose consumer reports a failure, gives it back, or does not report.

use crate::backoff::RetryBackoff;
use chrono::{DateTime, Utc};
use std::borrow::Cow;
use uuid::Uuid;

/// A reason is stored up to this number of characters: enough for a stack trace, and it is kept for each attempt.
const LONGEST_REASON: usize = 8_000;

/// A reason as it is stored: without one, a text that says so; a long one is cut.
///
/// ```
/// use recur_core::report::stored_reason;
///
/// assert_eq!(stored_reason(Some("timeout")), "timeout");
/// assert_eq!(stored_reason(None), "no reason given");
/// assert_eq!(stored_reason(Some(&"x".repeat(9_000))).chars().count(), 8_001);
/// ```
pub fn stored_reason(reason: Option<&str>) -> Cow<'_, str> {
    let reason = reason.unwrap_or("no reason given");
    match reason.char_indices().nth(LONGEST_REASON) {
        None => reason.into(),
        Some((end, _)) => format!("{}…", &reason[..end]).into(),
    }
}

/// A running dispatch, as far as the outcome depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// The dispatch.
    pub id: Uuid,
    /// The number of the attempt that runs, which fences reports: it grows with every claim.
    pub attempt: i32,
    /// How many of the attempts were given back, and do not count.
    pub releases: i32,
    /// How many attempts may count.
    pub max_attempts: i32,
    /// True if the dispatch is to stop.
    pub cancel_requested: bool,
}

/// What a dispatch is after a report, or after its lease has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is pending again.
    Retry {
        /// From then on it can be claimed.
        available_at: DateTime<Utc>,
    },
    /// It has failed for good.
    Failed,
    /// It is cancelled.
    Cancelled,
}

impl Running {
    /// How many attempts count so far, the one that runs included.
    pub fn used_attempts(&self) -> i32 {
        self.attempt.saturating_sub(self.releases)
    }

    /// May the dispatch be tried again?
    pub fn has_attempts_left(&self) -> bool {
        self.used_attempts() < self.max_attempts
    }

    /// The outcome of a failed attempt: a request to cancel comes first, then a retry after its pause, if `retry`
    /// allows it and attempts are left.
    ///
    /// ```
    /// use chrono::DateTime;
    /// use recur_core::backoff::RetryBackoff;
    /// use recur_core::report::{Outcome, Running};
    /// use uuid::Uuid;
    ///
    /// let running = Running {
    ///     id: Uuid::from_u128(1),
    ///     attempt: 3,
    ///     releases: 0,
    ///     max_attempts: 3,
    ///     cancel_requested: false,
    /// };
    /// let outcome = running.fail(true, &RetryBackoff::default(), DateTime::UNIX_EPOCH);
    /// assert_eq!(outcome, Outcome::Failed);
    /// ```
    pub fn fail(&self, retry: bool, backoff: &RetryBackoff, now: DateTime<Utc>) -> Outcome {
        if !retry && !self.cancel_requested {
            return Outcome::Failed;
        }
        let delay = backoff.delay(self.used_attempts(), self.id, self.attempt);
        let available_at = now.checked_add_signed(delay);
        self.fail_until(available_at.unwrap_or(DateTime::<Utc>::MAX_UTC))
    }

    /// The outcome of a failed attempt whose consumer knows when the next one makes sense: that replaces the pause, and
    /// grants no further attempt.
    pub fn fail_until(&self, available_at: DateTime<Utc>) -> Outcome {
        match (self.cancel_requested, self.has_attempts_left()) {
            (true, _) => Outcome::Cancelled,
            (false, true) => Outcome::Retry { available_at },
            (false, false) => Outcome::Failed,
        }
    }

    /// The outcome of a lease that has expired. There is no reason to wait: the next consumer may start at once.
    pub fn expire(&self, now: DateTime<Utc>) -> Outcome {
        self.fail_until(now)
    }

    /// The outcome of an attempt that is given back, now or for later, which then does not count.
    pub fn release(&self, available_at: DateTime<Utc>) -> Outcome {
        match self.cancel_requested {
            true => Outcome::Cancelled,
            false => Outcome::Retry { available_at },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;
    const AT_ONCE: Outcome = Outcome::Retry { available_at: NOW };

    fn running(attempt: i32, releases: i32, cancel_requested: bool) -> Running {
        Running {
            id: Uuid::from_u128(1),
            attempt,
            releases,
            max_attempts: 3,
            cancel_requested,
        }
    }

    fn pause(outcome: Outcome) -> Option<TimeDelta> {
        match outcome {
            Outcome::Retry { available_at } => Some(available_at - NOW),
            _ => None,
        }
    }

    #[test]
    fn a_failure_is_retried_while_attempts_are_left() {
        let backoff = RetryBackoff::default();
        for (attempt, releases, used) in [(1, 0, 1), (2, 0, 2), (9, 7, 2), (3, 3, 0)] {
            let one = running(attempt, releases, false);
            let expected = backoff.delay(used, one.id, attempt);
            assert_eq!(pause(one.fail(true, &backoff, NOW)), Some(expected));
            assert_eq!(one.fail(false, &backoff, NOW), Outcome::Failed);
        }
        for (attempt, releases) in [(3, 0), (4, 0), (10, 7)] {
            let last = running(attempt, releases, false);
            assert_eq!(last.fail(true, &backoff, NOW), Outcome::Failed);
        }
    }

    #[test]
    fn an_expired_lease_is_retried_at_once_while_attempts_are_left() {
        assert_eq!(running(2, 0, false).expire(NOW), AT_ONCE);
        assert_eq!(running(9, 7, false).expire(NOW), AT_ONCE);
        assert_eq!(running(3, 0, false).expire(NOW), Outcome::Failed);
    }

    #[test]
    fn a_consumer_may_say_when_to_retry_but_not_how_often() {
        let later = NOW + TimeDelta::hours(3);
        let at_that_time = Outcome::Retry {
            available_at: later,
        };
        assert_eq!(running(2, 0, false).fail_until(later), at_that_time);
        assert_eq!(running(9, 7, false).fail_until(later), at_that_time);
        assert_eq!(running(3, 0, false).fail_until(later), Outcome::Failed);
        assert_eq!(running(1, 0, true).fail_until(later), Outcome::Cancelled);
        assert_eq!(running(3, 0, false).release(later), at_that_time);
    }

    #[test]
    fn a_release_does_not_count() {
        assert_eq!(running(3, 0, false).release(NOW), AT_ONCE);
        assert_eq!(running(99, 0, false).release(NOW), AT_ONCE);
    }

    #[test]
    fn a_request_to_cancel_comes_first() {
        let backoff = RetryBackoff::default();
        for attempt in [1, 3] {
            let one = running(attempt, 0, true);
            for retry in [true, false] {
                assert_eq!(one.fail(retry, &backoff, NOW), Outcome::Cancelled);
            }
            assert_eq!(one.expire(NOW), Outcome::Cancelled);
            assert_eq!(one.release(NOW), Outcome::Cancelled);
        }
    }

    #[test]
    fn no_report_leads_beyond_the_end_of_the_calendar() {
        let json = r#"{"base": "100 years", "factor": 1, "cap": "100 years"}"#;
        let backoff = RetryBackoff::parse(json).unwrap();
        let end = DateTime::<Utc>::MAX_UTC;
        let outcome = running(1, 0, false).fail(true, &backoff, end);
        assert_eq!(outcome, Outcome::Retry { available_at: end });
    }
}
