//! Spans of time as people write them for PostgreSQL's `interval`: `30 seconds`, `1 day 02:00:00`, `PT30S`.

mod parse;
#[cfg(test)]
mod tests;

use crate::InvalidValue;
use chrono::TimeDelta;
use std::fmt;
use std::str::FromStr;

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
const MICROS_PER_HOUR: i64 = 60 * MICROS_PER_MINUTE;

/// A hundred years: a longer wait would lead beyond the end of the calendar.
pub const HUNDRED_YEARS: TimeDelta = TimeDelta::days(36_525);

/// A span of time in the three parts that PostgreSQL's `interval` has, each with its own sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Whole months, twelve of them a year.
    pub months: i32,
    /// Whole days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

impl Span {
    /// The length of the span as `extract(epoch FROM …)` has it: years of 365.25 days, further months of 30.
    ///
    /// ```
    /// use chrono::TimeDelta;
    /// use recur_core::span;
    ///
    /// let length = |text| span::parse(text).unwrap().length();
    /// assert_eq!(length("1 hour 30 minutes"), TimeDelta::minutes(90));
    /// assert_eq!(length("1 year"), TimeDelta::hours(8_766));
    /// assert_eq!(length("1 mon -40 days"), TimeDelta::days(-10));
    /// ```
    pub fn length(self) -> TimeDelta {
        let (years, months) = (self.months / 12, self.months % 12);
        let hours = i64::from(years) * 8_766 + i64::from(months) * 720 + i64::from(self.days) * 24;
        TimeDelta::hours(hours) + TimeDelta::microseconds(self.micros)
    }
}

/// Reads a span.
///
/// - Words and shorthand: `30 seconds`, `1 hour 30 minutes`, `90m`, `1.5 hours`, each unit once.
/// - A time: `00:00:30`, `1 day 02:00:00`.
/// - ISO 8601: `PT30S`, `P1D`, `P1DT2H`.
///
/// A number without a unit is refused, because it could mean anything.
///
/// ```
/// use recur_core::span;
///
/// assert_eq!(span::parse("90m"), span::parse("1 hour 30 minutes"));
/// assert_eq!(span::parse("1.5 hours").unwrap().to_string(), "01:30:00");
/// assert_eq!(
///     span::parse("30").unwrap_err().to_string(),
///     r#"invalid span "30": "30" has no unit, as in "30 seconds""#
/// );
/// ```
///
/// # Errors
/// When the text is no span, or too long to be one.
pub fn parse(text: &str) -> Result<Span, InvalidValue> {
    parse::parse(text).map_err(|problem| InvalidValue::new("span", text, problem))
}

impl FromStr for Span {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Span, InvalidValue> {
        parse(text)
    }
}

/// As PostgreSQL shows an interval in its default style: `1 year 2 mons 3 days 04:05:06.5`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = Shown::default();
        shown.part(f, self.months / 12, "year")?;
        shown.part(f, self.months % 12, "mon")?;
        shown.part(f, self.days, "day")?;
        if self.micros != 0 || !shown.any {
            shown.separate(f)?;
            shown.sign(f, self.micros < 0)?;
            let micros = self.micros.unsigned_abs();
            let part = |unit: i64, of: u64| micros / unit.unsigned_abs() % of;
            let hours = micros / MICROS_PER_HOUR.unsigned_abs();
            let (minutes, seconds) = (part(MICROS_PER_MINUTE, 60), part(MICROS_PER_SECOND, 60));
            write!(f, "{hours:02}:{minutes:02}:{seconds:02}")?;
            let fraction = micros % MICROS_PER_SECOND.unsigned_abs();
            if fraction != 0 {
                let digits = format!("{fraction:06}");
                write!(f, ".{}", digits.trim_end_matches('0'))?;
            }
        }
        Ok(())
    }
}

/// What of a span has been written.
#[derive(Default)]
struct Shown {
    any: bool,
    /// The last part was negative: a positive one must say that it is not.
    was_negative: bool,
}

impl Shown {
    fn part(&mut self, f: &mut fmt::Formatter<'_>, value: i32, unit: &str) -> fmt::Result {
        if value == 0 {
            return Ok(());
        }
        self.separate(f)?;
        self.sign(f, value < 0)?;
        let plural = if value == 1 { "" } else { "s" };
        write!(f, "{} {unit}{plural}", value.unsigned_abs())
    }

    fn separate(&mut self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::mem::replace(&mut self.any, true) {
            true => f.write_str(" "),
            false => Ok(()),
        }
    }

    fn sign(&mut self, f: &mut fmt::Formatter<'_>, is_negative: bool) -> fmt::Result {
        match (
            std::mem::replace(&mut self.was_negative, is_negative),
            is_negative,
        ) {
            (_, true) => f.write_str("-"),
            (true, false) => f.write_str("+"),
            (false, false) => Ok(()),
        }
    }
}
