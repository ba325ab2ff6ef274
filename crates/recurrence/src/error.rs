//! What can be wrong with a schedule, a zone, or the two together.
//!
//! Every message is one sentence for the author of the text: it names the offending part, its value
//! and what is expected. The hint, which is separate, says how to write it instead.

use std::fmt;

use crate::rrule::RuleError;
use crate::zone::nearest_zone;

/// A text that is no schedule.
///
/// # Examples
/// ```
/// use recurrence::Schedule;
///
/// let error = Schedule::parse("30/10 * * * *").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"cron minute "30/10" steps from a single value, expected 0-59"#
/// );
/// assert_eq!(error.hint(), Some("Write a range: 30-59/10."));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleError {
    message: String,
    hint: Option<String>,
}

impl ScheduleError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        ScheduleError {
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// How to write the text instead, where the message does not already say it.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ScheduleError {}

/// A name that is no IANA time zone.
///
/// # Examples
/// ```
/// use recurrence::Zone;
///
/// let error = Zone::parse("Europe/Munich").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"time zone "Europe/Munich" is not in the IANA database"#
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneError {
    pub(crate) name: String,
}

impl ZoneError {
    /// The name that was probably meant; if none is near, what names look like that the database has.
    ///
    /// # Examples
    /// ```
    /// use recurrence::Zone;
    ///
    /// let hint = |name| Zone::parse(name).unwrap_err().hint();
    /// assert_eq!(hint("Europe/Berln"), "Did you mean \"Europe/Berlin\"?");
    /// assert_eq!(hint("new york"), "Did you mean \"America/New_York\"?");
    /// ```
    pub fn hint(&self) -> String {
        match nearest_zone(&self.name) {
            Some(name) => format!("Did you mean \"{name}\"?"),
            None => "Use an IANA name such as UTC, Europe/Berlin or America/New_York.".to_owned(),
        }
    }
}

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "time zone \"{}\" is not in the IANA database", self.name)
    }
}

impl std::error::Error for ZoneError {}

/// A valid schedule that can't recur within its bounds.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Zone};
///
/// let error = Recurrence::new(
///     Arc::new(Schedule::parse("90m")?),
///     Zone::UTC,
///     Bounds::default(),
///     OnGap::RollForward,
///     OnFold::First,
/// )
/// .unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"schedule "90m" counts from starts_at, and starts_at is missing"#
/// );
/// # Ok::<(), recurrence::ScheduleError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecurrenceError {
    /// An interval, rule or RRULE counts from its start, and the bounds have none.
    MissingStart {
        /// The schedule's canonical text.
        schedule: String,
    },
    /// Nothing satisfies the schedule from this start on.
    NeverOccurs {
        /// The schedule's canonical text.
        schedule: String,
    },
    /// An RRULE can't be evaluated from this start.
    Rule(RuleError),
}

impl fmt::Display for RecurrenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecurrenceError::MissingStart { schedule } => write!(
                f,
                "schedule \"{schedule}\" counts from starts_at, and starts_at is missing"
            ),
            RecurrenceError::NeverOccurs { schedule } => {
                write!(f, "schedule \"{schedule}\" never occurs from starts_at on")
            }
            RecurrenceError::Rule(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RecurrenceError {}
