//! From the text of one part to its value.

use super::MAX_COUNT;
use super::error::RuleError;
use super::rule::{Freq, NthWeekday, WEEKDAYS, reading_order};
use super::stamp::Stamp;
use crate::text::excerpt;

pub(super) fn freq(value: &str) -> Result<Freq, RuleError> {
    Freq::ALL
        .iter()
        .find(|(_, name)| name.eq_ignore_ascii_case(value))
        .map(|(freq, _)| *freq)
        .ok_or_else(|| {
            wrong(
                "FREQ",
                value,
                "YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY, MINUTELY or SECONDLY",
            )
        })
}

pub(super) fn interval(value: &str) -> Result<u32, RuleError> {
    digits(value)
        .filter(|interval| *interval > 0)
        .ok_or_else(|| wrong("INTERVAL", value, "a whole number from 1 to 4294967295"))
}

pub(super) fn count(value: &str) -> Result<u32, RuleError> {
    digits(value)
        .filter(|count| (1..=MAX_COUNT).contains(count))
        .ok_or_else(|| wrong("COUNT", value, "a whole number from 1 to 10000"))
}

pub(super) fn until(value: &str) -> Result<Stamp, RuleError> {
    Stamp::parse(value).or_else(|| Stamp::parse_last_of_day(value)).ok_or_else(|| {
        wrong(
            "UNTIL",
            value,
            "a time like 20270131T090000Z (UTC) or 20270131T090000 (local to the action's time zone), \
             or a date like 20270131 (its whole day)",
        )
    })
}

pub(super) fn week_start(value: &str) -> Result<u8, RuleError> {
    weekday(value).ok_or_else(|| wrong("WKST", value, "a weekday: MO, TU, WE, TH, FR, SA or SU"))
}

pub(super) fn weekdays(value: &str) -> Result<Vec<NthWeekday>, RuleError> {
    let mut items = Vec::new();
    for item in value.split(',') {
        items.push(nth_weekday(item).ok_or_else(|| {
            wrong(
                "BYDAY",
                item,
                "weekdays MO, TU, WE, TH, FR, SA, SU, with a number from 1 to 53 or -1 to -53 in front \
                 to choose one of the period's, like 2MO or -1FR",
            )
        })?);
    }
    items.sort_unstable_by_key(|item| (item.weekday, item.nth.map(reading_order)));
    items.dedup();
    Ok(items)
}

fn nth_weekday(item: &str) -> Option<NthWeekday> {
    let split = item
        .len()
        .checked_sub(2)
        .filter(|at| item.is_char_boundary(*at))?;
    let (number, name) = item.split_at(split);
    let nth = if number.is_empty() {
        None
    } else {
        Some(signed(number, 53)?)
    };
    Some(NthWeekday {
        weekday: weekday(name)?,
        nth,
    })
}

fn weekday(name: &str) -> Option<u8> {
    WEEKDAYS
        .iter()
        .position(|known| known.eq_ignore_ascii_case(name))
        .map(|index| index as u8 + 1)
}

/// A part that holds a list of numbers.
pub(super) struct Numbers {
    part: &'static str,
    min: i16,
    max: i16,
    /// Whether -1 to -max, counted from the end, are allowed too.
    from_end: bool,
    expected: &'static str,
}

const fn plain(part: &'static str, min: i16, max: i16, expected: &'static str) -> Numbers {
    Numbers {
        part,
        min,
        max,
        from_end: false,
        expected,
    }
}

const fn from_either_end(part: &'static str, max: i16, expected: &'static str) -> Numbers {
    Numbers {
        part,
        min: 1,
        max,
        from_end: true,
        expected,
    }
}

pub(super) const MONTH: Numbers = plain("BYMONTH", 1, 12, "months from 1 to 12");
pub(super) const WEEK_NO: Numbers =
    from_either_end("BYWEEKNO", 53, "weeks from 1 to 53 or -1 to -53");
pub(super) const YEAR_DAY: Numbers =
    from_either_end("BYYEARDAY", 366, "days from 1 to 366 or -1 to -366");
pub(super) const MONTH_DAY: Numbers =
    from_either_end("BYMONTHDAY", 31, "days from 1 to 31 or -1 to -31");
pub(super) const HOUR: Numbers = plain("BYHOUR", 0, 23, "hours from 0 to 23");
pub(super) const MINUTE: Numbers = plain("BYMINUTE", 0, 59, "minutes from 0 to 59");
pub(super) const SECOND: Numbers = plain("BYSECOND", 0, 60, "seconds from 0 to 60");
pub(super) const SET_POS: Numbers =
    from_either_end("BYSETPOS", 366, "positions from 1 to 366 or -1 to -366");

pub(super) fn list(value: Option<&str>, numbers: &Numbers) -> Result<Vec<i16>, RuleError> {
    let mut items = Vec::new();
    for item in value.map(|value| value.split(',')).into_iter().flatten() {
        let number = if numbers.from_end {
            signed(item, numbers.max)
        } else {
            digits(item)
                .and_then(|number| i16::try_from(number).ok())
                .filter(|number| (numbers.min..=numbers.max).contains(number))
        };
        items.push(number.ok_or_else(|| wrong(numbers.part, item, numbers.expected))?);
    }
    items.sort_unstable_by_key(|item| reading_order(*item));
    items.dedup();
    Ok(items)
}

/// `±n` with n from 1 to `max`.
fn signed(text: &str, max: i16) -> Option<i16> {
    let (sign, number) = match text.strip_prefix('-') {
        Some(number) => (-1, number),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = i16::try_from(digits(number)?).ok()?;
    (1..=max).contains(&number).then_some(sign * number)
}

/// A number of digits only: `str::parse` alone would accept a `+`.
fn digits(text: &str) -> Option<u32> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

/// Replaces 60 by 59, as RFC 5545 reads a leap second on clocks without them.
pub(super) fn leap_second_as_59(mut seconds: Vec<i16>) -> Vec<i16> {
    for second in &mut seconds {
        *second = (*second).min(59);
    }
    seconds.dedup();
    seconds
}

fn wrong(part: &'static str, value: &str, expected: &'static str) -> RuleError {
    RuleError::Value {
        part,
        value: excerpt(value),
        expected,
    }
}
