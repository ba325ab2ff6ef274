//! What can be wrong with a schedule, a zone, or the two together.
//!
//! Every message is one sentence that names the offending part, its value and what is allowed, so
//! that it can be shown to the person who typed it. Advice on how to write it instead is kept
//! apart, as the hint.

use std::fmt;

use crate::rrule::RuleError;

/// A text that is no schedule.
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

    /// How to write it instead, where there is something useful to say.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneError {
    pub(crate) name: String,
}

impl ZoneError {
    pub fn hint(&self) -> &'static str {
        "Use an IANA name such as UTC, Europe/Berlin or America/New_York."
    }
}

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "time zone \"{}\" is not in the IANA database", self.name)
    }
}

impl std::error::Error for ZoneError {}

/// A valid schedule that can't recur within its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecurrenceError {
    /// Intervals, rules and RRULEs count from their start, and there is none.
    MissingStart { schedule: String },
    /// Nothing satisfies the schedule from this start on.
    NeverOccurs { schedule: String },
    /// An RRULE that can't be tied to this start.
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
