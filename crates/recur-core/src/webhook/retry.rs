//! What becomes of a delivery that has failed.

use crate::backoff::{RetryBackoff, fraction};
use crate::report::{Outcome, Running};
use crate::span::HUNDRED_YEARS;
use chrono::{DateTime, TimeDelta, Utc};

/// The pauses of a webhook that sets no retry_backoff.
const DELAYS: [TimeDelta; 7] = [
    TimeDelta::seconds(5),
    TimeDelta::minutes(5),
    TimeDelta::minutes(30),
    TimeDelta::hours(2),
    TimeDelta::hours(5),
    TimeDelta::hours(10),
    TimeDelta::hours(10),
];

/// How often a webhook is tried that does not say.
pub const MAX_ATTEMPTS: i32 = DELAYS.len() as i32 + 1;

/// The retry_backoff of an action that sets none: then the pauses of webhooks hold.
pub const BACKOFF_OF_ACTIONS: &str = crate::backoff::DEFAULT_JSON;

/// The outcome of a failed delivery. A request to cancel comes first; then, unless it is final and if attempts are
/// left, a retry after `retry_in`, or else after the pause of its back-off, which is a JSON text.
///
/// ```
/// use chrono::{DateTime, TimeDelta};
/// use recur_core::report::{Outcome, Running};
/// use recur_core::webhook::after_failure;
/// use uuid::Uuid;
///
/// let running = Running {
///     id: Uuid::from_u128(1),
///     attempt: 2,
///     releases: 0,
///     max_attempts: 8,
///     cancel_requested: false,
/// };
/// let now = DateTime::UNIX_EPOCH;
/// let Outcome::Retry { available_at } = after_failure(&running, None, None, false, now) else { panic!() };
/// assert!(available_at >= now + TimeDelta::seconds(270) && available_at <= now + TimeDelta::seconds(330));
/// assert_eq!(after_failure(&running, None, None, true, now), Outcome::Failed);
/// ```
pub fn after_failure(
    running: &Running,
    backoff: Option<&str>,
    retry_in: Option<TimeDelta>,
    is_final: bool,
    now: DateTime<Utc>,
) -> Outcome {
    let given = RetryBackoff::from_stored(backoff);
    // The outcome is decided as for every other dispatch.
    let decided = running.fail(!is_final, &given, now);
    let pause = match retry_in {
        Some(asked) => asked.clamp(TimeDelta::zero(), HUNDRED_YEARS),
        None if given != RetryBackoff::default() => return decided,
        None => default_pause(running),
    };
    match decided {
        Outcome::Retry { .. } => Outcome::Retry {
            available_at: now
                .checked_add_signed(pause)
                .unwrap_or(DateTime::<Utc>::MAX_UTC),
        },
        end => end,
    }
}

/// Up to a tenth less or more, as with every back-off.
fn default_pause(running: &Running) -> TimeDelta {
    let used = running.used_attempts().max(1).unsigned_abs() as usize;
    let delay = DELAYS[used.min(DELAYS.len()) - 1];
    let jitter = 0.9 + 0.2 * fraction(running.id, running.attempt);
    TimeDelta::milliseconds((delay.num_milliseconds() as f64 * jitter) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

    fn running(attempt: i32) -> Running {
        Running {
            id: Uuid::from_u128(0x1234_5678_9abc_def0),
            attempt,
            releases: 0,
            max_attempts: MAX_ATTEMPTS,
            cancel_requested: false,
        }
    }

    fn pause(running: &Running, backoff: Option<&str>, retry_in: Option<TimeDelta>) -> TimeDelta {
        match after_failure(running, backoff, retry_in, false, NOW) {
            Outcome::Retry { available_at } => available_at - NOW,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_pauses_are_those_of_the_list() {
        for (attempt, seconds) in [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000]
            .iter()
            .enumerate()
        {
            let attempt = attempt as i32 + 1;
            for backoff in [None, Some(BACKOFF_OF_ACTIONS)] {
                let pause = pause(&running(attempt), backoff, None).as_seconds_f64();
                let expected = f64::from(*seconds);
                assert!(
                    (pause - expected).abs() <= expected * 0.1 + 0.001,
                    "{attempt}: {pause}"
                );
            }
        }
        assert_eq!(
            after_failure(&running(8), None, None, false, NOW),
            Outcome::Failed
        );
        // More attempts go on with the last pause.
        let more = Running {
            max_attempts: 20,
            ..running(12)
        };
        assert!(pause(&more, None, None) >= TimeDelta::hours(9));
        let released = Running {
            releases: 20,
            ..running(3)
        };
        assert!(pause(&released, None, None) <= TimeDelta::seconds(6));
    }

    #[test]
    fn a_given_backoff_and_a_given_pause_hold() {
        let minute = r#"{"base": "1 minute", "factor": 1, "cap": "1 minute"}"#;
        let waits = pause(&running(1), Some(minute), None);
        assert!(waits >= TimeDelta::seconds(54) && waits <= TimeDelta::seconds(66));
        let asked = TimeDelta::seconds(7);
        assert_eq!(pause(&running(1), Some(minute), Some(asked)), asked);
        assert_eq!(
            pause(&running(1), None, Some(TimeDelta::days(-1))),
            TimeDelta::zero()
        );
        assert_eq!(
            pause(&running(1), None, Some(TimeDelta::MAX)),
            HUNDRED_YEARS
        );
    }

    #[test]
    fn a_request_to_cancel_comes_first() {
        let asked = Running {
            cancel_requested: true,
            ..running(1)
        };
        for is_final in [false, true] {
            assert_eq!(
                after_failure(&asked, None, None, is_final, NOW),
                Outcome::Cancelled
            );
        }
    }
}
