//! A second reader of single times.

use chrono::{DateTime, Datelike, NaiveDate};

/// A time: seconds since 1970, on the wall clock or in UTC, and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Unix seconds, or those of the wall clock.
    pub seconds: i64,
    /// The fraction.
    pub nanos: u32,
    /// Is there an offset?
    pub is_instant: bool,
}

/// Reads `2027-01-31T09:00[:00[.25]][+01:30]`, behind the `at`; None where it is malformed.
pub fn read(text: &str) -> Option<Moment> {
    let text = text.to_ascii_uppercase();
    let bytes = text.as_bytes();
    let two = |at: usize| -> Option<u32> {
        let pair = bytes.get(at..at + 2)?;
        pair.iter()
            .all(u8::is_ascii_digit)
            .then(|| u32::from(pair[0] - b'0') * 10 + u32::from(pair[1] - b'0'))
    };
    let is = |at: usize, allowed: &[u8]| bytes.get(at).is_some_and(|byte| allowed.contains(byte));
    let year = two(0)? * 100 + two(2)?;
    let is_separated = is(4, b"-") && is(7, b"-") && is(10, b"T ") && is(13, b":");
    let date = NaiveDate::from_ymd_opt(year as i32, two(5)?, two(8)?)
        .filter(|_| is_separated && year > 0)?;
    let (hour, minute) = (two(11)?, two(14)?);
    let (mut second, mut nanos, mut end) = (0, 0, 16);
    if is(16, b":") {
        (second, end) = (two(17)?, 19);
        if is(19, b".") {
            let digits = text[20..].bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return None;
            }
            // What is finer than a nanosecond is cut.
            nanos = format!("{:0<9}", &text[20..20 + digits.min(9)])
                .parse()
                .ok()?;
            end = 20 + digits;
        }
    }
    let time = date
        .and_hms_opt(hour, minute, second)?
        .and_utc()
        .timestamp();
    let offset = offset(text.get(end..)?)?;
    let seconds = time - offset.unwrap_or(0);
    let year = DateTime::from_timestamp(seconds, 0)?.year();
    // In UTC it may be another year.
    (1..=9999).contains(&year).then_some(Moment {
        seconds,
        nanos,
        is_instant: offset.is_some(),
    })
}

/// The outer option is whether it can be read.
fn offset(text: &str) -> Option<Option<i64>> {
    let (sign, digits) = match text.split_at_checked(1) {
        _ if text.is_empty() => return Some(None),
        Some(("Z", "")) => return Some(Some(0)),
        Some(("+", digits)) => (1, digits),
        Some(("-", digits)) => (-1, digits),
        _ => return None,
    };
    let digits = match digits.len() {
        5 if digits.as_bytes()[2] == b':' => format!("{}{}", digits.get(..2)?, digits.get(3..)?),
        2 => format!("{digits}00"),
        4 => digits.to_owned(),
        _ => return None,
    };
    let number: i64 = digits
        .parse()
        .ok()
        .filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let (hours, minutes) = (number / 100, number % 100);
    (hours < 24 && minutes < 60).then_some(Some(sign * (hours * 60 + minutes) * 60))
}
