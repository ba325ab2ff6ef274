//! How long a failed dispatch waits before it is tried again.

use crate::InvalidValue;
use crate::span::{self, HUNDRED_YEARS, Span};
use chrono::TimeDelta;
use serde_json::{Map, Value};
use uuid::Uuid;

/// The pause before a retry: `base * factor ^ (attempts used - 1)`, not above `cap`, and up to a tenth less or more.
///
/// ```
/// use chrono::TimeDelta;
/// use recur_core::backoff::RetryBackoff;
/// use uuid::Uuid;
///
/// let backoff = RetryBackoff::parse(r#"{"base": "10 seconds", "factor": 3, "cap": "1 minute"}"#).unwrap();
/// let pause = backoff.delay(2, Uuid::from_u128(1), 2);
/// assert!(pause >= TimeDelta::seconds(27) && pause <= TimeDelta::seconds(33));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryBackoff {
    base: TimeDelta,
    factor: f64,
    cap: TimeDelta,
}

/// The retry_backoff of an action that sets none.
pub const DEFAULT_JSON: &str = r#"{"base": "30 seconds", "factor": 2, "cap": "1 hour"}"#;

/// Keeps the power finite. Doubling 30 seconds 27 times is more than a hundred years.
const LARGEST_EXPONENT: i32 = 50;

const PROBLEM: &str = "must have a base longer than nothing, a factor from 1 to 100, and a cap not below the base \
                       and not above 100 years";

impl Default for RetryBackoff {
    fn default() -> RetryBackoff {
        RetryBackoff {
            base: TimeDelta::seconds(30),
            factor: 2.0,
            cap: TimeDelta::hours(1),
        }
    }
}

impl RetryBackoff {
    /// Reads the text of a JSON object with `base`, `factor` and `cap`.
    ///
    /// ```
    /// use recur_core::backoff::RetryBackoff;
    ///
    /// let error = RetryBackoff::parse(r#"{"base": "30", "factor": 2, "cap": "1 hour"}"#).unwrap_err();
    /// assert_eq!(error.detail(), Some(r#"In base, "30" has no unit, as in "30 seconds"."#));
    /// ```
    ///
    /// # Errors
    /// When it is no such object, or has something else as well, or a value is out of its range.
    pub fn parse(json: &str) -> Result<RetryBackoff, InvalidValue> {
        let invalid = |problem: &str| InvalidValue::new("retry_backoff", json, problem);
        let out_of_range = |detail: String| {
            let error = invalid(PROBLEM).with_hint(format!("For instance {DEFAULT_JSON}."));
            error.with_detail(detail)
        };
        match serde_json::from_str(json) {
            Ok(Value::Object(fields)) => RetryBackoff::from_fields(&fields).map_err(out_of_range),
            // A number that no float holds.
            Err(error) if json.trim_start().starts_with('{') => {
                Err(out_of_range(format!("It can't be read: {error}.")))
            }
            _ => Err(invalid("must be a JSON object")
                .with_hint(r#"Give retry_backoff as an object such as '{"key": "value"}'."#)),
        }
    }

    /// Reads a text that was stored, possibly by other means than the extension's functions: a value out of its
    /// range is moved into it, and what can't be read is as if it was not set.
    ///
    /// One dispatch whose pause can't be computed would otherwise fail every batch of reports that it is in.
    pub fn from_stored(json: Option<&str>) -> RetryBackoff {
        let fields = json.and_then(|json| serde_json::from_str(json).ok());
        let read = fields.and_then(|fields: Map<String, Value>| {
            let length = |name| length(&fields, name).ok();
            let base = length("base")?.clamp(TimeDelta::zero(), HUNDRED_YEARS);
            Some(RetryBackoff {
                base,
                factor: factor(&fields).ok()?.clamp(1.0, 100.0),
                cap: length("cap")?.clamp(base, HUNDRED_YEARS),
            })
        });
        read.unwrap_or_default()
    }

    fn from_fields(fields: &Map<String, Value>) -> Result<RetryBackoff, String> {
        let is_known = |name: &&String| ["base", "factor", "cap"].contains(&name.as_str());
        if let Some(name) = fields.keys().find(|name| !is_known(name)) {
            return Err(format!("\"{name}\" is no part of it."));
        }
        let (base, cap) = (
            forward_length(fields, "base")?,
            forward_length(fields, "cap")?,
        );
        let factor = factor(fields)?;
        if base <= TimeDelta::zero() {
            return Err("The base is not longer than nothing.".to_owned());
        }
        if cap < base {
            return Err("The cap is below the base.".to_owned());
        }
        if cap > HUNDRED_YEARS {
            return Err("The cap is above 100 years.".to_owned());
        }
        if !(1.0..=100.0).contains(&factor) {
            return Err("The factor is not from 1 to 100.".to_owned());
        }
        Ok(RetryBackoff { base, factor, cap })
    }

    /// The pause before the first retry.
    pub fn base(&self) -> TimeDelta {
        self.base
    }

    /// How much longer each further pause is.
    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// The longest pause.
    pub fn cap(&self) -> TimeDelta {
        self.cap
    }

    /// How long a dispatch waits after an attempt has failed, when it has used this many attempts.
    ///
    /// Up to a tenth less or more, so that dispatches that failed together do not come back together; the same attempt
    /// of the same dispatch always waits as long. Never negative, never above a hundred years.
    pub fn delay(&self, used_attempts: i32, dispatch: Uuid, attempt: i32) -> TimeDelta {
        let exponent = used_attempts.saturating_sub(1).clamp(0, LARGEST_EXPONENT);
        let cap = seconds(self.cap);
        let pause = (seconds(self.base) * self.factor.powi(exponent)).min(cap);
        let jittered = pause * (0.9 + 0.2 * fraction(dispatch, attempt));
        // A float that is too large for an integer becomes the largest one.
        let micros = (jittered * 1e6).round() as i64;
        TimeDelta::microseconds(micros).clamp(TimeDelta::zero(), HUNDRED_YEARS)
    }
}

/// The length of a span that goes forward in all of its parts: "1 day -48 hours" is a mistake, and so is "1 day -23
/// hours".
fn forward_length(fields: &Map<String, Value>, name: &str) -> Result<TimeDelta, String> {
    let span = span(fields, name)?;
    if span.months < 0 || span.days < 0 || span.micros < 0 {
        return Err(format!("The {name} has a negative part."));
    }
    Ok(span.length())
}

fn length(fields: &Map<String, Value>, name: &str) -> Result<TimeDelta, String> {
    span(fields, name).map(Span::length)
}

fn span(fields: &Map<String, Value>, name: &str) -> Result<Span, String> {
    let text = match fields.get(name) {
        None => return Err(format!("There is no {name}.")),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    span::parse(&text).map_err(|error| format!("In {name}, {}.", error.problem()))
}

fn factor(fields: &Map<String, Value>) -> Result<f64, String> {
    let number = match fields.get("factor") {
        None => return Err("There is no factor.".to_owned()),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(other) => other.as_f64(),
    };
    let number = number.filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "The factor is no number.".to_owned())
}

fn seconds(length: TimeDelta) -> f64 {
    length.as_seconds_f64()
}

/// A number from 0 to 1 that depends on the dispatch and the attempt alone: the mixing function of SplitMix64.
pub(crate) fn fraction(dispatch: Uuid, attempt: i32) -> f64 {
    let (high, low) = dispatch.as_u64_pair();
    let mut hash = high ^ low.rotate_left(32);
    hash ^= u64::from(attempt.unsigned_abs()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    (hash >> 11) as f64 / ((1_u64 << 53) - 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backoff(base: &str, factor: &str, cap: &str) -> Result<RetryBackoff, InvalidValue> {
        RetryBackoff::parse(&format!(
            r#"{{"base": {base}, "factor": {factor}, "cap": {cap}}}"#
        ))
    }

    #[test]
    fn the_default_is_that_of_the_column() {
        assert_eq!(
            RetryBackoff::parse(DEFAULT_JSON),
            Ok(RetryBackoff::default())
        );
    }

    #[test]
    fn every_part_is_read() {
        let read = backoff(r#""1 day 02:00""#, "1.5", r#""100 years""#).unwrap();
        assert_eq!(read.base(), TimeDelta::hours(26));
        assert_eq!(read.factor(), 1.5);
        assert_eq!(read.cap(), HUNDRED_YEARS);
        // Quoted numbers are numbers in SQL.
        assert_eq!(
            backoff(r#""PT1S""#, r#""100""#, r#""1s""#)
                .unwrap()
                .factor(),
            100.0
        );
    }

    #[test]
    fn errors_have_this_text() {
        let error = RetryBackoff::parse("[]").unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"invalid retry_backoff "[]": must be a JSON object"#
        );
        let error = RetryBackoff::parse("{}").unwrap_err();
        assert_eq!(
            error.to_string(),
            concat!(
                r#"invalid retry_backoff "{}": must have a base longer than nothing, a factor from 1 to 100, "#,
                "and a cap not below the base and not above 100 years"
            )
        );
        assert_eq!(
            error.hint(),
            Some(r#"For instance {"base": "30 seconds", "factor": 2, "cap": "1 hour"}."#)
        );
    }

    #[test]
    fn each_part_has_its_range() {
        let (second, hour) = (r#""1 second""#, r#""1 hour""#);
        for (base, factor, cap, detail) in [
            (
                "30",
                "2",
                hour,
                "In base, \"30\" has no unit, as in \"30 seconds\".",
            ),
            (
                r#""soon""#,
                "2",
                hour,
                "In base, \"soon\" is no number, expected a span such as \"30 seconds\".",
            ),
            (
                second,
                "2",
                "null",
                "In cap, \"null\" is no number, expected a span such as \"30 seconds\".",
            ),
            (
                r#""0 s""#,
                "2",
                hour,
                "The base is not longer than nothing.",
            ),
            (
                r#""99999999999999999999 hours""#,
                "2",
                hour,
                "In base, is too long.",
            ),
            (r#""9999999999 years""#, "2", hour, "In base, is too long."),
            (hour, "2", second, "The cap is below the base."),
            (
                second,
                "2",
                r#""100 years 00:00:01""#,
                "The cap is above 100 years.",
            ),
            (second, "0.99", hour, "The factor is not from 1 to 100."),
            (second, "100.01", hour, "The factor is not from 1 to 100."),
            (second, r#""NaN""#, hour, "The factor is no number."),
            (second, "[]", hour, "The factor is no number."),
        ] {
            let error = backoff(base, factor, cap).unwrap_err();
            assert_eq!(error.detail(), Some(detail));
        }
    }

    #[test]
    fn no_part_of_a_span_is_negative() {
        for base in [
            "-1 s",
            "1 day -48 hours",
            // Longer than nothing, which makes it no better.
            "1 day -23 hours",
            "1 mon -40 days",
            // As long as PostgreSQL compares, which counts 360 days a year, it is four days long.
            "-1 year 364 days",
        ] {
            let error = backoff(&format!("{base:?}"), "2", r#""1 hour""#).unwrap_err();
            assert_eq!(error.detail(), Some("The base has a negative part."));
        }
        let error = backoff(r#""1 second""#, "2", r#""1 day -1 second""#).unwrap_err();
        assert_eq!(error.detail(), Some("The cap has a negative part."));
    }

    #[test]
    fn each_part_is_there_and_no_other() {
        let detail = |json| {
            RetryBackoff::parse(json)
                .unwrap_err()
                .detail()
                .map(str::to_owned)
        };
        let other = r#"{"base": "1 s", "factor": 2, "cap": "1 s", "more": 1}"#;
        assert_eq!(detail(other).unwrap(), "\"more\" is no part of it.");
        assert_eq!(
            detail(r#"{"base": "1 s", "cap": "1 s"}"#).unwrap(),
            "There is no factor."
        );
    }

    #[test]
    fn stored_values_out_of_their_range_are_moved_into_it() {
        let stored = |json| RetryBackoff::from_stored(Some(json));
        assert_eq!(RetryBackoff::from_stored(None), RetryBackoff::default());
        for unreadable in [
            "{}",
            "null",
            "nonsense",
            r#"{"base": "30", "factor": 2, "cap": "1 h"}"#,
        ] {
            assert_eq!(stored(unreadable), RetryBackoff::default());
        }
        let far = stored(r#"{"base": "1000000 years", "factor": 1000, "cap": "1000000 years"}"#);
        assert_eq!(
            (far.base(), far.factor(), far.cap()),
            (HUNDRED_YEARS, 100.0, HUNDRED_YEARS)
        );
        let negative = stored(r#"{"base": "-1 year 364 days", "factor": 2, "cap": "-1 s"}"#);
        assert_eq!(negative.delay(9, Uuid::nil(), 9), TimeDelta::zero());
    }

    #[test]
    fn pauses_grow_up_to_the_cap_and_spread_by_a_tenth() {
        let backoff = backoff(r#""10 seconds""#, "3", r#""1 minute""#).unwrap();
        for (used, wanted) in [
            (-5, 10.0),
            (0, 10.0),
            (1, 10.0),
            (2, 30.0),
            (3, 60.0),
            (i32::MAX, 60.0),
        ] {
            let pauses: Vec<f64> = (0..1_000)
                .map(|n| seconds(backoff.delay(used, Uuid::from_u128(n), 7)) / wanted)
                .collect();
            let (least, most) = pauses
                .iter()
                .fold((f64::MAX, 0.0_f64), |(least, most), pause| {
                    (least.min(*pause), most.max(*pause))
                });
            assert!((0.9..0.905).contains(&least), "{least}");
            assert!((1.095..=1.1).contains(&most), "{most}");
            let mean = pauses.iter().sum::<f64>() / 1_000.0;
            assert!((mean - 1.0).abs() < 0.01, "{mean}");
        }
    }

    // Computed with another program, from the definition of SplitMix64.
    #[test]
    fn one_attempt_of_one_dispatch_always_waits_as_long() {
        let id = Uuid::from_u128(0x01a3185c_507b_756e_9b28_9a452a13fa9c);
        let delay = |attempt| {
            RetryBackoff::default()
                .delay(1, id, attempt)
                .num_microseconds()
        };
        assert_eq!(
            [1, 2, 3].map(delay),
            [Some(31_337_869), Some(27_863_268), Some(27_078_091)]
        );
    }

    #[test]
    fn no_pause_is_above_a_hundred_years() {
        let longest = backoff(r#""1 day""#, "100", r#""100 years""#).unwrap();
        let pauses = (0..100).map(|n| longest.delay(i32::MAX, Uuid::from_u128(n), 1));
        assert_eq!(pauses.max(), Some(HUNDRED_YEARS));
    }
}
