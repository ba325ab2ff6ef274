//! When an endpoint is left alone: the circuit breaker.
//!
//! | state | begins | ends |
//! | --- | --- | --- |
//! | healthy | a delivery succeeds | five in a row fail |
//! | paused | five in a row fail, or a probe does | after 30 seconds, doubled with each probe, at most an hour |
//! | probing | the pause is over | the one delivery that is tried succeeds or fails |
//! | disabled | it answers 410, or nothing has succeeded for five days | somebody resumes it |
//!
//! An endpoint of the operator is shared by owners: what may be due to the payload of one of them does not count.

use crate::choice::choice;
use chrono::{DateTime, TimeDelta, Utc};

/// An endpoint is paused after this many failures in a row.
const FAILURES_BEFORE_PAUSE: i32 = 5;
const FIRST_PAUSE: TimeDelta = TimeDelta::seconds(30);
const LONGEST_PAUSE: TimeDelta = TimeDelta::hours(1);
/// An endpoint is disabled if nothing has succeeded for this long.
const LONGEST_FAILING: TimeDelta = TimeDelta::days(5);
/// Longer than this, no endpoint is left alone because it asked to.
const LONGEST_THROTTLE: TimeDelta = TimeDelta::hours(1);

choice! {
    /// How a delivery went.
    ///
    /// ```
    /// use recur_core::webhook::Delivery;
    ///
    /// assert_eq!("gone".parse(), Ok(Delivery::Gone));
    /// assert!("lost".parse::<Delivery>().is_err());
    /// ```
    pub enum Delivery in "outcome" {
        /// The endpoint has taken it.
        Delivered = "delivered",
        /// It did not arrive, or was refused.
        Failed = "failed",
        /// The endpoint says that it is gone for good: 410.
        Gone = "gone",
        /// The endpoint asks for time.
        Throttled = "throttled",
    }
}

impl Delivery {
    /// Does it say something of the endpoint, rather than of what was sent? An answer of 400 to 499 other than 429 may
    /// be due to the payload; so may a redirect. Owners that share an endpoint must not close it to each other.
    ///
    /// ```
    /// use recur_core::webhook::Delivery;
    ///
    /// assert!(Delivery::Failed.is_of_endpoint(None) && Delivery::Failed.is_of_endpoint(Some(500)));
    /// assert!(!Delivery::Failed.is_of_endpoint(Some(413)) && !Delivery::Gone.is_of_endpoint(Some(410)));
    /// ```
    pub fn is_of_endpoint(self, http_status: Option<i32>) -> bool {
        match self {
            Delivery::Delivered | Delivery::Throttled => true,
            Delivery::Failed => {
                http_status.is_none_or(|status| status == 429 || !(300..500).contains(&status))
            }
            Delivery::Gone => false,
        }
    }
}

/// What is known of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// How many deliveries have failed in a row.
    pub failures: i32,
    /// When the first of them did.
    pub failing_since: Option<DateTime<Utc>>,
    /// Until when the endpoint is left alone because of them; in the past while it is probed.
    pub paused_until: Option<DateTime<Utc>>,
    /// Until when the endpoint has asked to be left alone.
    pub throttled_until: Option<DateTime<Utc>>,
    /// Since when nothing is delivered any more.
    pub disabled_at: Option<DateTime<Utc>>,
}

/// What an endpoint may get now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As much as it takes.
    Open,
    /// One delivery, if none runs.
    Probe,
    /// Nothing, yet.
    Closed,
    /// Nothing, until somebody resumes it.
    Disabled,
}

/// What has changed for those who deliver, and those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is left alone until then.
    Paused(DateTime<Utc>),
    /// It works again.
    Resumed,
    /// It gets nothing any more.
    Disabled(Reason),
}

/// Why an endpoint is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It has said so.
    Gone,
    /// Nothing has succeeded for days.
    Failing,
}

impl Reason {
    /// For people.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Gone => "the endpoint answered 410: it is gone",
            Reason::Failing => "no delivery has succeeded for five days",
        }
    }
}

impl Health {
    /// What the endpoint may get now.
    pub fn standing(&self, now: DateTime<Utc>) -> Standing {
        let is_ahead = |until: Option<DateTime<Utc>>| until.is_some_and(|until| until > now);
        if self.disabled_at.is_some() {
            return Standing::Disabled;
        }
        if is_ahead(self.paused_until) || is_ahead(self.throttled_until) {
            return Standing::Closed;
        }
        match self.paused_until {
            Some(_) => Standing::Probe,
            None => Standing::Open,
        }
    }

    /// Would a success change nothing?
    pub fn is_sound(&self) -> bool {
        *self == Health::default()
    }

    /// What is known after a delivery, and what has changed by it. `retry_in` is how long the endpoint asks for.
    ///
    /// ```
    /// use chrono::{DateTime, TimeDelta};
    /// use recur_core::webhook::{Delivery, Health, Turn};
    ///
    /// let (mut health, now) = (Health::default(), DateTime::UNIX_EPOCH);
    /// for failure in 1..=5 {
    ///     let (after, turn) = health.after(Delivery::Failed, None, now);
    ///     assert_eq!(turn, (failure == 5).then_some(Turn::Paused(now + TimeDelta::seconds(30))));
    ///     health = after;
    /// }
    /// assert_eq!(health.after(Delivery::Delivered, None, now), (Health::default(), Some(Turn::Resumed)));
    /// ```
    pub fn after(
        &self,
        delivery: Delivery,
        retry_in: Option<TimeDelta>,
        now: DateTime<Utc>,
    ) -> (Health, Option<Turn>) {
        if self.disabled_at.is_some() {
            return (self.clone(), None);
        }
        match delivery {
            Delivery::Delivered => {
                let turn = self.paused_until.map(|_| Turn::Resumed);
                (Health::default(), turn)
            }
            Delivery::Gone => self.clone().disabled(Reason::Gone, now),
            Delivery::Failed => self.failed(now),
            Delivery::Throttled => self.throttled(retry_in, now),
        }
    }

    fn disabled(self, reason: Reason, now: DateTime<Utc>) -> (Health, Option<Turn>) {
        let health = Health {
            disabled_at: Some(now),
            ..self
        };
        (health, Some(Turn::Disabled(reason)))
    }

    /// The same with the instant of the first failure; has nothing succeeded for too long since?
    fn failing(&self, now: DateTime<Utc>) -> (Health, bool) {
        let since = self.failing_since.unwrap_or(now);
        let health = Health {
            failing_since: Some(since),
            ..self.clone()
        };
        (health, now - since >= LONGEST_FAILING)
    }

    fn failed(&self, now: DateTime<Utc>) -> (Health, Option<Turn>) {
        let (mut health, is_over) = self.failing(now);
        if is_over {
            return health.disabled(Reason::Failing, now);
        }
        // What was under way when the pause began says nothing new.
        if self.paused_until.is_some_and(|until| until > now) {
            return (health, None);
        }
        health.failures = self.failures.saturating_add(1);
        if health.failures < FAILURES_BEFORE_PAUSE {
            return (health, None);
        }
        let until = now + pause(health.failures - FAILURES_BEFORE_PAUSE);
        health.paused_until = Some(until);
        // Of a pause that goes on, people have heard.
        let turn = self.paused_until.is_none().then_some(Turn::Paused(until));
        (health, turn)
    }

    fn throttled(&self, retry_in: Option<TimeDelta>, now: DateTime<Utc>) -> (Health, Option<Turn>) {
        let (mut health, is_over) = self.failing(now);
        if is_over {
            return health.disabled(Reason::Failing, now);
        }
        let wait = retry_in
            .unwrap_or(FIRST_PAUSE)
            .clamp(TimeDelta::zero(), LONGEST_THROTTLE);
        health.throttled_until = health.throttled_until.max(Some(now + wait));
        (health, None)
    }
}

/// How long an endpoint is left alone, after this many probes.
fn pause(probes: i32) -> TimeDelta {
    let doubled = FIRST_PAUSE * 2_i32.pow(probes.clamp(0, 10).unsigned_abs());
    doubled.min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: DateTime<Utc> = DateTime::UNIX_EPOCH;

    fn seconds(seconds: i64) -> DateTime<Utc> {
        START + TimeDelta::seconds(seconds)
    }

    fn failing(times: i32, at: DateTime<Utc>) -> Health {
        (0..times).fold(Health::default(), |health, _| {
            health.after(Delivery::Failed, None, at).0
        })
    }

    #[test]
    fn some_failures_are_no_matter() {
        let health = failing(4, START);
        assert_eq!(health.standing(START), Standing::Open);
        assert!(!health.is_sound());
        let (health, turn) = health.after(Delivery::Delivered, None, seconds(1));
        assert!(health.is_sound());
        assert_eq!(turn, None);
        // They are counted in a row.
        assert_eq!(failing(4, START).standing(START), Standing::Open);
    }

    #[test]
    fn a_pause_doubles_with_each_probe_that_fails() {
        let mut health = failing(5, START);
        let mut now = START;
        for expected in [30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600] {
            let until = now + TimeDelta::seconds(expected);
            assert_eq!(health.paused_until, Some(until));
            let before = until - TimeDelta::microseconds(1);
            assert_eq!(health.standing(before), Standing::Closed);
            assert_eq!(health.standing(until), Standing::Probe);
            // What fails late changes nothing.
            assert_eq!(
                health.after(Delivery::Failed, None, before),
                (health.clone(), None)
            );
            now = until;
            let (after, turn) = health.after(Delivery::Failed, None, now);
            assert_eq!(turn, None);
            health = after;
        }
        let (after, turn) = health.after(Delivery::Delivered, None, now);
        assert_eq!((after, turn), (Health::default(), Some(Turn::Resumed)));
    }

    #[test]
    fn five_days_of_failures_disable() {
        let health = failing(1, START);
        let last = START + LONGEST_FAILING;
        let (_, turn) = health.after(Delivery::Failed, None, last - TimeDelta::microseconds(1));
        assert_eq!(turn, None);
        for delivery in [Delivery::Failed, Delivery::Throttled] {
            let (disabled, turn) = health.after(delivery, None, last);
            assert_eq!(turn, Some(Turn::Disabled(Reason::Failing)));
            assert_eq!(disabled.standing(last), Standing::Disabled);
            // A delivery that was under way does not bring it back.
            assert_eq!(
                disabled.after(Delivery::Delivered, None, last),
                (disabled.clone(), None)
            );
        }
        let (_, turn) = health.after(Delivery::Delivered, None, last);
        assert_eq!(turn, None);
    }

    #[test]
    fn only_what_no_payload_can_bring_about_closes_a_shared_endpoint() {
        let failed = |status| Delivery::Failed.is_of_endpoint(status);
        for status in [None, Some(200), Some(429), Some(500), Some(599)] {
            assert!(failed(status), "{status:?}");
        }
        for status in [300, 308, 400, 404, 410, 413, 428, 430, 499] {
            assert!(!failed(Some(status)), "{status}");
        }
        assert!(Delivery::Delivered.is_of_endpoint(Some(204)));
        assert!(Delivery::Throttled.is_of_endpoint(Some(503)));
        assert!(!Delivery::Gone.is_of_endpoint(None));
    }

    #[test]
    fn gone_is_gone_at_once() {
        let (health, turn) = Health::default().after(Delivery::Gone, None, START);
        assert_eq!(turn, Some(Turn::Disabled(Reason::Gone)));
        assert_eq!(health.standing(seconds(1)), Standing::Disabled);
        assert_eq!(health.after(Delivery::Gone, None, seconds(1)).1, None);
    }

    #[test]
    fn an_endpoint_gets_the_time_that_it_asks_for() {
        let asked = Some(TimeDelta::seconds(90));
        let (health, turn) = Health::default().after(Delivery::Throttled, asked, START);
        assert_eq!((health.failures, turn), (0, None));
        assert_eq!(health.standing(seconds(89)), Standing::Closed);
        assert_eq!(health.standing(seconds(90)), Standing::Open);
        // A shorter time of a delivery that ends later does not shorten it.
        let short = Some(TimeDelta::seconds(1));
        let (health, _) = health.after(Delivery::Throttled, short, seconds(1));
        assert_eq!(health.throttled_until, Some(seconds(90)));
        for (asked, waits) in [(i64::MAX / 2_000, 3_600), (-5, 0)] {
            let asked = Some(TimeDelta::seconds(asked));
            let (health, _) = Health::default().after(Delivery::Throttled, asked, START);
            assert_eq!(health.throttled_until, Some(seconds(waits)));
        }
    }
}
