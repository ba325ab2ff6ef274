//! How many deliveries a second an endpoint gets.

use chrono::{DateTime, Utc};

/// A token bucket: it fills by `rate` a second, and holds the tokens of one second, one at least.
///
/// ```
/// use chrono::{DateTime, TimeDelta};
/// use recur_core::webhook::Bucket;
///
/// let now = DateTime::UNIX_EPOCH;
/// let bucket = Bucket::full(4.0, now).without(3);
/// assert_eq!(bucket.available(), 1);
/// assert_eq!(bucket.refilled(4.0, now + TimeDelta::milliseconds(500)).available(), 3);
/// assert_eq!(bucket.refilled(4.0, now + TimeDelta::hours(1)).available(), 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// How many deliveries may begin.
    pub tokens: f64,
    /// As of when.
    pub at: DateTime<Utc>,
}

impl Bucket {
    /// A full bucket.
    pub fn full(rate: f64, at: DateTime<Utc>) -> Bucket {
        Bucket {
            tokens: capacity(rate),
            at,
        }
    }

    /// The bucket later. A stored one may hold anything, and a clock may go back.
    pub fn refilled(self, rate: f64, now: DateTime<Utc>) -> Bucket {
        let seconds = (now - self.at).as_seconds_f64().max(0.0);
        let tokens = (self.tokens + seconds * rate).clamp(0.0, capacity(rate));
        match tokens.is_finite() {
            true => Bucket { tokens, at: now },
            false => Bucket::full(rate, now),
        }
    }

    /// How many deliveries may begin now.
    pub fn available(self) -> u32 {
        // A float becomes the nearest integer that there is. What was computed a little low counts.
        (self.tokens + 1e-9).floor() as u32
    }

    /// The bucket after this many deliveries have begun.
    pub fn without(self, deliveries: u32) -> Bucket {
        Bucket {
            tokens: (self.tokens - f64::from(deliveries)).max(0.0),
            ..self
        }
    }
}

fn capacity(rate: f64) -> f64 {
    rate.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[test]
    fn no_more_than_the_rate_passes() {
        let start = DateTime::UNIX_EPOCH;
        for rate in [0.5, 1.0, 7.0] {
            let mut bucket = Bucket::full(rate, start);
            let mut passed = 0;
            for tick in 0..=1_000 {
                bucket = bucket.refilled(rate, start + TimeDelta::milliseconds(100 * tick));
                passed += bucket.available();
                bucket = bucket.without(bucket.available());
            }
            let expected = rate * 100.0 + rate.max(1.0);
            assert!(
                (f64::from(passed) - expected).abs() <= 1.0,
                "{rate}: {passed}"
            );
        }
    }

    #[test]
    fn whatever_is_stored_the_bucket_works() {
        let now = DateTime::UNIX_EPOCH;
        for tokens in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e300, 1e300] {
            let bucket = Bucket {
                tokens,
                at: now + TimeDelta::days(1),
            }
            .refilled(2.0, now);
            assert!(bucket.available() <= 2, "{tokens}");
            assert!(
                bucket
                    .refilled(2.0, now + TimeDelta::seconds(1))
                    .available()
                    == 2
            );
        }
    }
}
