//! One type for all notations, and its parser.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::at::At;
use crate::cron::{CronSpec, second_reader};
use crate::error::ScheduleError;
use crate::interval::{self, Interval};
use crate::rrule::RuleSet;
use crate::rule::StructuredRule;

/// A validated schedule, in any notation. Its `Display` is the canonical text, which parses back to
/// an equal value.
///
/// # Examples
/// ```
/// use recurrence::Schedule;
///
/// for (text, canonical) in [
///     ("0 9 * * mon-fri", "0 9 * * MON-FRI"),
///     ("@daily", "0 0 * * *"),
///     ("120m", "2h"),
///     ("every 2 days", "2d"),
///     ("daily", "1d"),
///     ("P1Y6M", "18mo"),
///     (r#"{"unit":"week","every":2}"#, r#"{"every":2,"unit":"week"}"#),
///     ("rrule:freq=monthly;byday=-1fr", "RRULE:FREQ=MONTHLY;BYDAY=-1FR"),
///     ("at 2027-01-31 09:00", "at 2027-01-31T09:00:00"),
/// ] {
///     let schedule = Schedule::parse(text)?;
///     assert_eq!(schedule.to_string(), canonical);
///     assert_eq!(Schedule::parse(canonical)?, schedule);
/// }
/// # Ok::<(), recurrence::ScheduleError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    kind: Kind,
}

/// The notation of a schedule, with its parsed form.
///
/// # Examples
/// ```
/// use recurrence::interval::Interval;
/// use recurrence::{Kind, Schedule};
///
/// let schedule = Schedule::parse("90m")?;
/// assert!(matches!(schedule.kind(), Kind::Interval(Interval::Seconds(5400))));
/// # Ok::<(), recurrence::ScheduleError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A cron expression or a nickname (`@daily`).
    Cron(Arc<CronSpec>),
    /// `90m`, `every 30 minutes`, `P1M` or a preset (`daily`).
    Interval(Interval),
    /// A JSON object.
    Rule(StructuredRule),
    /// An RFC 5545 recurrence rule.
    RRule(Box<RuleSet>),
    /// A single time.
    At(At),
}

/// The longest text that is read, in bytes: far more than a schedule written by hand needs. RRULEs,
/// which may list dates, have a limit of their own.
const MAX_TEXT: usize = 1_000;

impl Schedule {
    /// Parses any notation: cron or a nickname, an interval or a preset, a JSON rule, an RRULE, or
    /// `at` a time.
    ///
    /// # Errors
    /// When the text is no schedule. The message names the offending part, its value and what is
    /// expected; [`ScheduleError::hint`] may say how to write it instead.
    ///
    /// # Examples
    /// ```
    /// use recurrence::Schedule;
    ///
    /// let error = Schedule::parse("61 * * * *").unwrap_err();
    /// assert_eq!(error.to_string(), r#"cron minute "61" is out of range, expected 0-59"#);
    /// ```
    pub fn parse(text: &str) -> Result<Schedule, ScheduleError> {
        let trimmed = text.trim_ascii();
        if starts_with_ignoring_case(trimmed, "RRULE") {
            return parse_rrule(trimmed);
        }
        if starts_with_ignoring_case(trimmed, "FREQ=") {
            return parse_rrule(&format!("RRULE:{trimmed}"));
        }
        if text.len() > MAX_TEXT {
            return Err(ScheduleError::new(format!(
                "schedule has {} bytes, expected at most {MAX_TEXT}",
                text.len()
            )));
        }
        if trimmed.is_empty() {
            return Err(ScheduleError::new("schedule is empty").with_hint(NOTATIONS));
        }
        if trimmed.starts_with('{') {
            return StructuredRule::parse(trimmed).map(|rule| Kind::Rule(rule).into());
        }
        if starts_with_ignoring_case(trimmed, "at ") {
            return At::parse(trimmed).map(|at| Kind::At(at).into());
        }
        if interval::is_in_words(trimmed) {
            return Interval::parse(trimmed).map(|interval| Kind::Interval(interval).into());
        }
        // A cron expression has at least three words, an interval in shorthand has one.
        if trimmed.starts_with('@') || trimmed.split_ascii_whitespace().nth(2).is_some() {
            return CronSpec::parse(trimmed).map(|cron| Kind::Cron(Arc::new(cron)).into());
        }
        Interval::parse(text).map(|interval| Kind::Interval(interval).into())
    }

    /// Parses a text that is about to be stored: like [`Schedule::parse`], and two independent
    /// readers must agree on a cron expression.
    ///
    /// The second reader is the croner crate's parser. It reads the text as written and its canonical
    /// form, and its fields and first occurrences in UTC are compared with this crate's. Where the two
    /// differ, the text is refused, unless an error of croner is known to be the cause. The other
    /// notations have one reader.
    ///
    /// The answer never changes from one call to the next. The comparison costs some tens of
    /// microseconds, so texts that were admitted before are read with [`Schedule::parse`].
    ///
    /// # Errors
    /// When the text is no schedule, and when the two readers differ.
    ///
    /// # Examples
    /// ```
    /// use recurrence::Schedule;
    ///
    /// let schedule = Schedule::admit("0 9 * * mon-fri")?;
    /// assert_eq!(schedule.to_string(), "0 9 * * MON-FRI");
    /// assert!(Schedule::admit("0 25 * * *").is_err());
    /// # Ok::<(), recurrence::ScheduleError>(())
    /// ```
    pub fn admit(text: &str) -> Result<Schedule, ScheduleError> {
        let schedule = Schedule::parse(text)?;
        if let Kind::Cron(cron) = schedule.kind() {
            second_reader::confirm(text.trim_ascii(), cron)?;
        }
        Ok(schedule)
    }

    /// The schedule's notation and parsed form.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Whether occurrences are counted from [`Bounds::starts_at`](crate::Bounds::starts_at), which is
    /// then required.
    ///
    /// # Examples
    /// ```
    /// use recurrence::Schedule;
    ///
    /// assert!(Schedule::parse("90m")?.needs_start());
    /// assert!(!Schedule::parse("0 9 * * *")?.needs_start());
    /// # Ok::<(), recurrence::ScheduleError>(())
    /// ```
    pub fn needs_start(&self) -> bool {
        matches!(
            self.kind,
            Kind::Interval(_) | Kind::Rule(_) | Kind::RRule(_)
        )
    }
}

pub(crate) const NOTATIONS: &str = "Write a cron expression (0 9 * * MON-FRI), an interval (90m, P1M), \
     a JSON rule ({\"every\":2,\"unit\":\"week\"}), an RRULE, or \"at\" and a time.";

fn parse_rrule(text: &str) -> Result<Schedule, ScheduleError> {
    let rules = RuleSet::parse(text).map_err(|error| {
        let plain = ScheduleError::new(error.to_string());
        match error.hint() {
            Some(hint) => plain.with_hint(hint),
            None => plain,
        }
    })?;
    Ok(Kind::RRule(Box::new(rules)).into())
}

fn starts_with_ignoring_case(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

impl From<Kind> for Schedule {
    fn from(kind: Kind) -> Schedule {
        Schedule { kind }
    }
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Schedule, ScheduleError> {
        Schedule::parse(text)
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Cron(cron) => cron.fmt(f),
            Kind::Interval(interval) => interval.fmt(f),
            Kind::Rule(rule) => rule.fmt(f),
            Kind::RRule(rules) => rules.fmt(f),
            Kind::At(at) => at.fmt(f),
        }
    }
}
