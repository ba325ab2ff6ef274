//! Why a recurrence rule is refused.

use std::error::Error;
use std::fmt::{self, Display, Formatter};

use super::{MAX_COUNT, MAX_DATES, MAX_TEXT};

/// Why a text is not a recurrence rule, or why a rule can't be evaluated.
///
/// # Examples
/// ```
/// use recurrence::rrule::RuleSet;
///
/// let error = RuleSet::parse("RRULE:FREQ=DAILY;BYHOUR=24").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"RRULE part BYHOUR has "24", expected hours from 0 to 23"#
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleError {
    /// The text is longer than [`MAX_TEXT`].
    TooLong {
        /// The length of the text, in bytes.
        length: usize,
    },
    /// The first line does not begin with `RRULE:`.
    NoRule {
        /// The start of that line.
        line: String,
    },
    /// There is a second RRULE line.
    SecondRule,
    /// There is a DTSTART line.
    StartInText,
    /// A line is neither RRULE, EXDATE nor RDATE.
    UnknownLine {
        /// The start of that line.
        line: String,
    },
    /// A line has a parameter, such as `EXDATE;TZID=…` or `RDATE;VALUE=…`.
    Parameter {
        /// EXDATE or RDATE.
        name: &'static str,
        /// The parameter.
        parameter: String,
    },
    /// EXDATE or RDATE has more than [`MAX_DATES`] times.
    TooManyDates {
        /// EXDATE or RDATE.
        name: &'static str,
        /// How many times it has.
        count: usize,
    },
    /// Nothing stands between two semicolons.
    EmptyPart {
        /// The part before the empty one.
        after: String,
    },
    /// A part has no `=`, or nothing behind it.
    NoValue {
        /// The part.
        part: String,
    },
    /// A part has a name that RFC 5545 does not define.
    UnknownPart {
        /// The part's name.
        part: String,
    },
    /// A part is given twice.
    RepeatedPart {
        /// The part's name.
        part: &'static str,
    },
    /// There is no FREQ.
    MissingFreq,
    /// A value is malformed or out of range.
    Value {
        /// The part's name.
        part: &'static str,
        /// The value.
        value: String,
        /// What the part may have.
        expected: &'static str,
    },
    /// Two parts that RFC 5545 does not allow together.
    Conflict {
        /// The part that can't be used.
        part: &'static str,
        /// The part that excludes it.
        with: &'static str,
        /// What is allowed instead.
        allowed: &'static str,
    },
    /// The last occurrence of a COUNT is too far away to be found within the step limit.
    CountOutOfReach {
        /// The COUNT.
        count: u32,
    },
}

impl RuleError {
    /// How to write the rule instead, where the message does not already say it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            RuleError::NoRule { .. } => "Write the rule as RRULE:FREQ=WEEKLY;BYDAY=TU,TH.",
            RuleError::SecondRule => {
                "Use one action per rule, or add single times with an RDATE: line."
            }
            RuleError::StartInText => {
                "Give the start as starts_at; it anchors the rule as DTSTART does."
            }
            RuleError::Parameter { parameter, .. } if parameter.starts_with("TZID") => {
                "Times are local to the time zone of the action; write instants in UTC with a Z at the end."
            }
            RuleError::Parameter { .. } => {
                "Write times as 20270131T090000 (local to the action's time zone) or 20270131T090000Z (UTC)."
            }
            RuleError::TooManyDates { .. } => {
                "Use more than one action, or a rule that leaves the dates out."
            }
            RuleError::Value { part: "COUNT", .. } | RuleError::CountOutOfReach { .. } => {
                "To limit the number of runs, set max_runs; it has no such limit."
            }
            RuleError::Conflict { part: "COUNT", .. } => "Keep one of the two.",
            _ => return None,
        })
    }
}

impl Display for RuleError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            RuleError::TooLong { length } => {
                write!(f, "recurrence rule has {length} bytes, expected at most {MAX_TEXT}")
            }
            RuleError::NoRule { line } => {
                write!(f, "recurrence rule begins with \"{line}\", expected RRULE:")
            }
            RuleError::SecondRule => f.write_str("recurrence rule has a second RRULE line, expected one"),
            RuleError::StartInText => f.write_str("recurrence rule has a DTSTART line, expected none"),
            RuleError::UnknownLine { line } => write!(
                f,
                "recurrence rule has the line \"{line}\", expected EXDATE: or RDATE: below the RRULE line"
            ),
            RuleError::Parameter { name, parameter } => {
                write!(f, "{name} has the parameter \"{parameter}\", expected {name}: and times, without parameters")
            }
            RuleError::TooManyDates { name, count } => {
                write!(f, "{name} has {count} times, expected at most {MAX_DATES}")
            }
            RuleError::EmptyPart { after } if after.is_empty() => {
                f.write_str("RRULE begins with an empty part, expected NAME=value parts with one ; between them")
            }
            RuleError::EmptyPart { after } => write!(
                f,
                "RRULE has an empty part after \"{after}\", expected NAME=value parts with one ; between them"
            ),
            RuleError::NoValue { part } => {
                write!(f, "RRULE part \"{part}\" has no value, expected NAME=value")
            }
            RuleError::UnknownPart { part } => write!(
                f,
                "RRULE part \"{part}\" is unknown, expected FREQ, INTERVAL, COUNT, UNTIL, WKST, BYMONTH, BYWEEKNO, \
                 BYYEARDAY, BYMONTHDAY, BYDAY, BYHOUR, BYMINUTE, BYSECOND or BYSETPOS"
            ),
            RuleError::RepeatedPart { part } => {
                write!(f, "RRULE part {part} is given twice, expected it once")
            }
            RuleError::MissingFreq => f.write_str(
                "RRULE has no FREQ, expected FREQ=YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY, MINUTELY or SECONDLY",
            ),
            RuleError::Value { part, value, expected } => {
                let owner = if matches!(*part, "EXDATE" | "RDATE") { "" } else { "RRULE part " };
                write!(f, "{owner}{part} has \"{value}\", expected {expected}")
            }
            RuleError::Conflict { part, with, allowed } => {
                write!(f, "RRULE part {part} can't be combined with {with}; {allowed}")
            }
            RuleError::CountOutOfReach { count } => write!(
                f,
                "RRULE part COUNT is {count}, which a rule this sparse does not reach, expected 1 to {MAX_COUNT} \
                 occurrences that can be counted out from the start"
            ),
        }
    }
}

impl Error for RuleError {}
