//! Small values: pauses, spans, intervals, patterns.

use crate::input::{Choices, Input};
use crate::naive;
use crate::target::Signature;
use chrono::{DateTime, Duration, Months, TimeDelta, Utc};
use recur_core::action::Interval;
use recur_core::backoff::RetryBackoff;
use recur_core::pattern::Pattern;
use recur_core::span::{self, HUNDRED_YEARS};
use std::cmp::Ordering;
use uuid::Uuid;

/// An id by choices.
pub fn uuid(choices: &mut Choices<'_>) -> Uuid {
    Uuid::from_u64_pair(choices.number(4), choices.number(4))
}

/// Pauses before retries: what is read, and how long they are.
pub fn backoff(input: &Input) -> Signature {
    let mut choices = input.choices();
    let stored = RetryBackoff::from_stored(Some(&input.text));
    check_delays(&stored, &mut choices);
    match RetryBackoff::parse(&input.text) {
        Ok(backoff) => {
            assert_eq!(stored, backoff, "as it is stored");
            assert!(backoff.base() > TimeDelta::zero() && backoff.base() <= backoff.cap());
            assert!(backoff.cap() <= HUNDRED_YEARS && (1.0..=100.0).contains(&backoff.factor()));
            let fields: serde_json::Value = serde_json::from_str(&input.text).expect("JSON");
            let fields = fields.as_object().expect("an object");
            assert!(
                fields
                    .keys()
                    .all(|key| ["base", "factor", "cap"].contains(&key.as_str())),
                "{fields:?}"
            );
            for (name, length) in [("base", backoff.base()), ("cap", backoff.cap())] {
                if let Some(text) = fields[name].as_str() {
                    assert_eq!(
                        span::parse(text).map(|span| span.length()),
                        Ok(length),
                        "{name}"
                    );
                }
            }
            Signature::of_shape(0, &input.text)
        }
        Err(error) => {
            assert_eq!(error.argument(), "retry_backoff");
            assert!(error.hint().is_some());
            Signature::of_error(error.detail().unwrap_or(error.problem()))
        }
    }
}

fn check_delays(backoff: &RetryBackoff, choices: &mut Choices<'_>) {
    let (id, attempt) = (uuid(choices), choices.number(1) as i32);
    let used = match choices.below(4) {
        0 => choices.pick(&[i32::MIN, -1, 0, 1, 2, 51, 52, i32::MAX]),
        _ => choices.below(60) as i32,
    };
    let delay = backoff.delay(used, id, attempt);
    assert_eq!(delay, backoff.delay(used, id, attempt), "the same again");
    assert!(
        delay >= TimeDelta::zero() && delay <= HUNDRED_YEARS,
        "{delay}"
    );
    // Multiplied step by step, up to the cap.
    let (base, cap) = (
        backoff.base().as_seconds_f64(),
        backoff.cap().as_seconds_f64(),
    );
    let mut pause = base;
    for _ in 1..used.clamp(0, 51) {
        pause = (pause * backoff.factor()).min(cap);
    }
    let pause = pause.min(cap);
    let seconds = delay.as_seconds_f64();
    let slack = 1e-5 + pause * 1e-9;
    let longest = (pause * 1.1).min(HUNDRED_YEARS.as_seconds_f64());
    assert!(
        seconds >= (pause * 0.9).min(longest) - slack,
        "{seconds} s after {used} attempts, {pause} expected"
    );
    assert!(
        seconds <= longest + slack,
        "{seconds} s after {used} attempts, {pause} expected"
    );
}

/// Spans of time.
pub fn span(input: &Input) -> Signature {
    let expected = naive::span::read(&input.text);
    match span::parse(&input.text) {
        Ok(span) => {
            let parts = (i64::from(span.months), i64::from(span.days), span.micros);
            assert!(
                expected.is_none_or(|expected| expected == parts),
                "{span:?}, and the model has {expected:?}"
            );
            let shown = span.to_string();
            assert_eq!(span::parse(&shown), Ok(span), "shown as {shown:?}");
            // The extension has a second writer, for values of its own.
            let other = Interval {
                months: span.months,
                days: span.days,
                micros: span.micros,
            };
            let is_infinite = other.to_string().contains("infinity");
            assert!(
                is_infinite || shown == other.to_string(),
                "{shown:?} and {other}"
            );
            let years = TimeDelta::hours(i64::from(span.months / 12) * 8_766);
            let months = TimeDelta::days(i64::from(span.months % 12) * 30 + i64::from(span.days));
            assert_eq!(
                span.length(),
                years + months + TimeDelta::microseconds(span.micros)
            );
            Signature::of_shape(0, &shown)
        }
        Err(error) => {
            assert_eq!(expected, None, "refused with {error}");
            assert_eq!(error.value(), input.text);
            Signature::of_error(error)
        }
    }
}

/// Intervals to wait: what passes the check moves every instant forward.
pub fn wait(input: &Input) -> Signature {
    let mut choices = input.choices();
    let mut part = |most: i64| match choices.below(6) {
        0 | 1 => 0,
        2 => choices.within(-40, 40),
        3 => choices.within(-most, most),
        _ => choices.pick(&[1, -1, 28, -28, 29, -29, 30, -30, 31, -31, most, -most]),
    };
    let hour = 3_600_000_000;
    let (months, days, hours) = (part(1_300), part(37_000), part(900_000));
    let micros = hours * hour + part(3_000_000);
    let interval = Interval {
        months: months as i32,
        days: days as i32,
        micros,
    };
    let shown = interval.to_string();
    let read =
        span::parse(&shown).map(|span| (i64::from(span.months), i64::from(span.days), span.micros));
    assert_eq!(read, Ok((months, days, micros)), "shown as {shown:?}");
    let positive = interval.check("lease", false);
    let any = interval.check("jitter", true);
    assert!(
        positive.is_err() || any.is_ok(),
        "what is longer than nothing is not shorter"
    );
    // A month of 30 days: PostgreSQL's own comparison.
    let length =
        (i128::from(months) * 30 + i128::from(days)) * 24 * i128::from(hour) + i128::from(micros);
    assert_eq!(interval.compare(Interval::ZERO), length.cmp(&0));
    if interval.compare(Interval::ZERO) == Ordering::Less {
        assert!(any.is_err(), "{shown} is negative");
    }
    if any.is_ok() {
        let hundred_years = 36_000 * 24 * i128::from(hour);
        assert!(length <= hundred_years, "{shown} is too long");
        for start in [
            "2027-01-31T12:00:00Z",
            "2027-02-01T00:00:00Z",
            "2028-02-29T00:00:00Z",
            "2027-03-01T00:00:00Z",
        ] {
            let start: DateTime<Utc> = start.parse().expect("an instant");
            let end = added(start, interval);
            let moves = end.is_some_and(|end| end > start || (end == start && positive.is_err()));
            assert!(moves, "{start} and {shown} are {end:?}");
        }
    }
    let signs = [months, days, micros].map(|part| part.signum() as usize & 3);
    Signature::of_numbers(&[
        signs[0],
        signs[1],
        signs[2],
        usize::from(positive.is_ok()),
        usize::from(any.is_ok()),
    ])
}

/// The sum as PostgreSQL has it: months, then days, then time.
fn added(start: DateTime<Utc>, interval: Interval) -> Option<DateTime<Utc>> {
    let months = Months::new(interval.months.unsigned_abs());
    let moved = match interval.months {
        0.. => start.checked_add_months(months)?,
        _ => start.checked_sub_months(months)?,
    };
    let moved = moved.checked_add_signed(Duration::days(i64::from(interval.days)))?;
    moved.checked_add_signed(Duration::microseconds(interval.micros))
}

/// Patterns of action types.
pub fn pattern(input: &Input) -> Signature {
    let text = input.text.as_str();
    let stars = text.matches('*').count();
    let is_blank = text.chars().all(char::is_whitespace);
    let is_sound = !is_blank
        && text.chars().count() <= 255
        && (stars == 0 || (stars == 1 && text.ends_with('*')));
    let pattern = match Pattern::parse("action_types", text) {
        Ok(pattern) => pattern,
        Err(error) => {
            assert!(!is_sound, "refused with {error}");
            return Signature::of_error(error.problem());
        }
    };
    assert!(is_sound, "{pattern} is no pattern");
    assert_eq!(pattern.to_string(), text);
    assert_eq!(text.parse::<Pattern>().as_ref(), Ok(&pattern));
    assert_eq!(pattern.exact().is_some(), stars == 0);
    assert_eq!(pattern.is_all(), text == "*");
    let mut choices = input.choices();
    for _ in 0..3 {
        let end = crate::mutate::boundary(text, choices.below(text.len() + 1));
        let tried = format!(
            "{}{}",
            &text[..end],
            choices.pick(&["", "x", "*", ":", "ü"])
        );
        let expected = match text.strip_suffix('*') {
            Some(prefix) => tried.as_bytes().starts_with(prefix.as_bytes()),
            None => tried == text,
        };
        assert_eq!(pattern.matches(&tried), expected, "{text:?} and {tried:?}");
        if let Ok(other) = tried.parse::<Pattern>() {
            check_order(
                &pattern,
                &other,
                choices.pick(&["task:created", "a", "mail:", "x"]),
            );
        }
    }
    Signature::of_numbers(&[stars, text.len().min(4), usize::from(text.is_ascii())])
}

fn check_order(one: &Pattern, other: &Pattern, action_type: &str) {
    assert_eq!(one.cmp(other), other.cmp(one).reverse());
    assert_eq!(one.cmp(other) == Ordering::Equal, one == other);
    let specific = |pattern: &Pattern| {
        (
            pattern.exact().is_some(),
            pattern.prefix().map_or(0, str::len),
        )
    };
    if specific(one) > specific(other) {
        assert!(one > other, "{one} is more specific than {other}");
    }
    let both = [one.clone(), other.clone()];
    let best = Pattern::most_specific(&both, action_type);
    let matching: Vec<&Pattern> = both
        .iter()
        .filter(|pattern| pattern.matches(action_type))
        .collect();
    assert_eq!(best.is_some(), !matching.is_empty());
    assert!(
        matching.iter().all(|pattern| best >= Some(*pattern)),
        "{best:?} of {matching:?}"
    );
}
