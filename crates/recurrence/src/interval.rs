//! Intervals: every N months, days or seconds from the start.

use std::fmt;

use crate::error::ScheduleError;
use crate::schedule::NOTATIONS;
use crate::text::excerpt;

/// A step of calendar months, or of calendar days and elapsed seconds.
///
/// Months don't mix with the rest: how long "a month and an hour" is depends on which is added
/// first. Days and seconds do: the days keep the wall-clock time, then the seconds elapse.
///
/// # Examples
/// ```
/// use recurrence::interval::Interval;
///
/// assert_eq!(Interval::parse("6mo")?, Interval::Months(6));
/// assert_eq!(Interval::parse("P1W")?, Interval::Days { days: 7, seconds: 0 });
/// assert_eq!(Interval::parse("every-30-minutes")?, Interval::Seconds(1800));
/// assert_eq!(Interval::parse("PT36H")?.to_string(), "36h");
/// assert!(Interval::parse("P1M1D").is_err());
/// # Ok::<(), recurrence::ScheduleError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interval {
    /// Calendar months, at least 1.
    Months(u32),
    /// Calendar days and elapsed seconds.
    Days {
        /// At least 1.
        days: u32,
        /// Any number, also 0.
        seconds: u32,
    },
    /// Elapsed seconds, at least 1.
    Seconds(u32),
}

/// A step of more than 1,000 years is a mistake. The limits also keep the arithmetic from overflow.
const MAX_MONTHS: u64 = 12_000;
const MAX_DAYS: u64 = 366_000;
const MAX_SECONDS: u64 = u32::MAX as u64;

/// The parts of a duration as written.
#[derive(Clone, Copy, Default)]
struct Parts {
    months: u64,
    days: u64,
    seconds: u64,
}

impl Parts {
    /// A count has ten digits at most, and the longest unit 604,800 seconds: their product fits.
    fn times(self, count: u64) -> Parts {
        Parts {
            months: self.months * count,
            days: self.days * count,
            seconds: self.seconds * count,
        }
    }
}

/// A day, an hour or a week from the start on. Unlike a nickname (`@daily`), a preset keeps the time of day
/// that the start has.
const PRESETS: [(&str, Parts); 5] = [
    ("hourly", seconds(1, 3600)),
    ("daily", days(1, 1)),
    ("weekly", days(1, 7)),
    ("monthly", months(1, 1)),
    ("yearly", months(1, 12)),
];

/// The preset of that name, in any case.
fn preset(text: &str) -> Option<Parts> {
    let (_, parts) = PRESETS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text))?;
    Some(*parts)
}

impl Interval {
    /// Parses shorthand such as `90m`, words such as `every 90 minutes`, `every-90-minutes` or `daily`,
    /// or an ISO 8601 duration.
    ///
    /// # Errors
    /// When the text is none of them, or its length is zero, too long or not whole seconds.
    pub fn parse(text: &str) -> Result<Interval, ScheduleError> {
        if text.starts_with(['P', '-', '+']) {
            return parse_iso(text);
        }
        if let Some(rest) = text.strip_prefix("every-") {
            return parse_preset(text, rest);
        }
        if let Some(parts) = preset(text) {
            return Interval::new(text, parts);
        }
        if is_in_words(text) {
            return parse_words(text);
        }
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            return parse_shorthand(text);
        }
        Err(ScheduleError::new(format!(
            "schedule \"{}\" is in no known notation",
            excerpt(text)
        ))
        .with_hint(NOTATIONS))
    }

    fn new(text: &str, parts: Parts) -> Result<Interval, ScheduleError> {
        let Parts {
            months,
            days,
            seconds,
        } = parts;
        if months > MAX_MONTHS || days > MAX_DAYS || seconds > MAX_SECONDS {
            return Err(ScheduleError::new(format!(
                "interval \"{}\" is too long, \
                 expected at most {MAX_MONTHS} months, {MAX_DAYS} days or {MAX_SECONDS} seconds",
                excerpt(text)
            )));
        }
        match (months as u32, days as u32, seconds as u32) {
            (0, 0, 0) => Err(ScheduleError::new(format!(
                "interval \"{}\" is zero, expected a positive length",
                excerpt(text)
            ))),
            (months, 0, 0) => Ok(Interval::Months(months)),
            (0, 0, seconds) => Ok(Interval::Seconds(seconds)),
            (0, days, seconds) => Ok(Interval::Days { days, seconds }),
            _ => Err(ScheduleError::new(format!(
                "interval \"{}\" mixes months with days or time, expected one or the other",
                excerpt(text)
            ))
            .with_hint("A month has no fixed length; use a JSON rule or an RRULE to name days.")),
        }
    }
}

/// Splits leading ASCII digits off.
fn split_number(text: &str) -> (&str, &str) {
    let end = text
        .bytes()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

fn parse_shorthand(text: &str) -> Result<Interval, ScheduleError> {
    let (number, unit) = split_number(text);
    let expected = || {
        ScheduleError::new(format!(
            "interval \"{}\" has unit \"{}\", expected s, m (minutes), h, d, w or mo (months)",
            excerpt(text),
            excerpt(unit)
        ))
        .with_hint("Write one number and one unit, such as 90m or 6mo, or an ISO 8601 duration.")
    };
    let count = parse_count(text, number)?;
    let parts = match unit {
        "s" => seconds(count, 1),
        "m" => seconds(count, 60),
        "h" => seconds(count, 3600),
        "d" => days(count, 1),
        "w" => days(count, 7),
        "mo" => months(count, 1),
        _ => return Err(expected()),
    };
    Interval::new(text, parts)
}

/// `every-30-minutes`
fn parse_preset(text: &str, rest: &str) -> Result<Interval, ScheduleError> {
    let (number, unit) = rest.split_once('-').unwrap_or((rest, ""));
    let refused = || {
        ScheduleError::new(format!(
            "preset \"{}\" is unknown, expected every-N- and seconds, minutes, hours, days, weeks, months or years",
            excerpt(text)
        ))
        .with_hint("Such as every-30-minutes.")
    };
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refused());
    }
    let count = parse_count(text, number)?;
    let parts = unit_in_words(unit).ok_or_else(refused)?;
    Interval::new(text, parts.times(count))
}

/// One of a unit, by its name in the singular or the plural.
fn unit_in_words(name: &str) -> Option<Parts> {
    let name = name.to_ascii_lowercase();
    Some(match name.strip_suffix('s').unwrap_or(&name) {
        "second" | "sec" => seconds(1, 1),
        "minute" | "min" => seconds(1, 60),
        "hour" => seconds(1, 3600),
        "day" => days(1, 1),
        "week" => days(1, 7),
        "month" => months(1, 1),
        "year" => months(1, 12),
        _ => return None,
    })
}

/// Whether a text is an interval in words: a preset, `every …`, or a number and the name of a unit, such as `2 days`.
pub(crate) fn is_in_words(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    let (first, second) = (words.next().unwrap_or(""), words.next());
    let is_number = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit());
    match second {
        None => preset(first).is_some(),
        Some(_) if first.eq_ignore_ascii_case("every") => true,
        Some(unit) => is_number && unit_in_words(unit).is_some(),
    }
}

/// `30 seconds`, `every day`, `1 hour 30 minutes`.
fn parse_words(text: &str) -> Result<Interval, ScheduleError> {
    let refused = || {
        ScheduleError::new(format!(
            "interval \"{}\" is not understood, \
             expected numbers and seconds, minutes, hours, days, weeks, months or years",
            excerpt(text)
        ))
        .with_hint("Such as 30 seconds, every 2 days, or every hour. For days of the week write a cron expression.")
    };
    let mut words: Vec<&str> = text.split_ascii_whitespace().collect();
    if words[0].eq_ignore_ascii_case("every") {
        words.remove(0);
    }
    if let [unit] = words.as_slice() {
        let parts = unit_in_words(unit).filter(|_| !unit.ends_with(['s', 'S']));
        return Interval::new(text, parts.ok_or_else(refused)?);
    }
    let mut total = Parts::default();
    for pair in words.chunks(2) {
        let [number, unit] = pair else {
            return Err(refused());
        };
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(refused());
        }
        let part = unit_in_words(unit)
            .ok_or_else(refused)?
            .times(parse_count(text, number)?);
        total.months += part.months;
        total.days += part.days;
        total.seconds += part.seconds;
    }
    Interval::new(text, total)
}

fn parse_count(text: &str, number: &str) -> Result<u64, ScheduleError> {
    // Ten digits exceed every limit, and don't overflow when multiplied.
    match number.trim_start_matches('0').len() {
        0..=10 => Ok(number.parse().unwrap_or(0)),
        _ => Err(ScheduleError::new(format!(
            "interval \"{}\" holds a number that is too large",
            excerpt(text)
        ))),
    }
}

const fn seconds(count: u64, each: u64) -> Parts {
    Parts {
        months: 0,
        days: 0,
        seconds: count * each,
    }
}

const fn days(count: u64, each: u64) -> Parts {
    Parts {
        months: 0,
        days: count * each,
        seconds: 0,
    }
}

const fn months(count: u64, each: u64) -> Parts {
    Parts {
        months: count * each,
        days: 0,
        seconds: 0,
    }
}

fn parse_iso(text: &str) -> Result<Interval, ScheduleError> {
    let refused = |problem: &str| {
        ScheduleError::new(format!(
            "ISO 8601 duration \"{}\" {problem}, expected a form such as P1D, P2W, P6M, PT15M or P1DT12H",
            excerpt(text)
        ))
    };
    if text.contains('-') {
        return Err(refused("is negative"));
    }
    let mut rest = text
        .strip_prefix('P')
        .ok_or_else(|| refused("does not begin with P"))?;
    let mut total = Parts::default();
    // Each designator may occur once, in this order; T stands between days and hours.
    let mut order = 0;
    let mut in_time = false;
    let mut is_empty = true;
    while !rest.is_empty() {
        if let Some(time) = rest.strip_prefix('T') {
            if in_time || time.is_empty() {
                return Err(refused("has a T without a time"));
            }
            in_time = true;
            rest = time;
            continue;
        }
        let (number, after) = split_number(rest);
        let (fraction, after) = split_fraction(after);
        let mut designators = after.chars();
        let designator = designators.next();
        let (place, parts): (u8, fn(u64) -> Parts) = match (in_time, designator) {
            (_, _) if number.is_empty() => return Err(refused("lacks a number")),
            (_, None) => return Err(refused("lacks a unit")),
            (false, Some('Y')) => (1, |n| months(n, 12)),
            (false, Some('M')) => (2, |n| months(n, 1)),
            (false, Some('W')) => (3, |n| days(n, 7)),
            (false, Some('D')) => (4, |n| days(n, 1)),
            (true, Some('H')) => (5, |n| seconds(n, 3600)),
            (true, Some('M')) => (6, |n| seconds(n, 60)),
            (true, Some('S')) => (7, |n| seconds(n, 1)),
            (_, Some(other)) => {
                return Err(refused(&format!("has \"{other}\" where a unit should be")));
            }
        };
        if place <= order {
            return Err(refused("repeats a unit or has units out of order"));
        }
        order = place;
        is_empty = false;
        rest = designators.as_str();
        let mut part = parts(parse_count(text, number)?);
        if let Some(fraction) = fraction {
            let is_last = rest.is_empty();
            part.seconds += whole_seconds(fraction, parts(1).seconds)
                .filter(|_| is_last)
                .ok_or_else(|| refused("has a fraction that is no whole number of seconds"))?;
        }
        total.months += part.months;
        total.days += part.days;
        total.seconds += part.seconds;
    }
    if is_empty {
        return Err(refused("is empty"));
    }
    Interval::new(text, total)
}

/// Splits a decimal sign and its digits off, where there is one.
fn split_fraction(text: &str) -> (Option<&str>, &str) {
    match text.strip_prefix(['.', ',']) {
        Some(rest) => {
            let (digits, rest) = split_number(rest);
            (Some(digits), rest)
        }
        None => (None, text),
    }
}

/// A decimal fraction of a unit in seconds; `None` where that is no whole number.
fn whole_seconds(digits: &str, unit: u64) -> Option<u64> {
    if digits.is_empty() || digits.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(digits.len() as u32);
    let scaled = digits.parse::<u64>().ok()? * unit;
    (unit > 0 && scaled.is_multiple_of(scale)).then_some(scaled / scale)
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Interval::Months(months) => write!(f, "{months}mo"),
            Interval::Days { days, seconds: 0 } if days % 7 == 0 => write!(f, "{}w", days / 7),
            Interval::Days { days, seconds: 0 } => write!(f, "{days}d"),
            Interval::Days { days, seconds } => write!(f, "P{days}DT{}", TimePart(seconds)),
            Interval::Seconds(seconds) if seconds % 3600 == 0 => write!(f, "{}h", seconds / 3600),
            Interval::Seconds(seconds) if seconds % 60 == 0 => write!(f, "{}m", seconds / 60),
            Interval::Seconds(seconds) => write!(f, "{seconds}s"),
        }
    }
}

/// Seconds as the time part of an ISO 8601 duration: `12H30M`.
struct TimePart(u32);

impl fmt::Display for TimePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hours, minutes, seconds) = (self.0 / 3600, self.0 / 60 % 60, self.0 % 60);
        for (count, designator) in [(hours, 'H'), (minutes, 'M'), (seconds, 'S')] {
            if count > 0 {
                write!(f, "{count}{designator}")?;
            }
        }
        Ok(())
    }
}
