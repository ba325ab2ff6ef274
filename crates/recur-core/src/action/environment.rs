//! What a check depends on besides the values: settings, and readers of texts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use recurrence::{Schedule, ScheduleError, Zone};

use super::demands::Demands;
use super::interval::Interval;

/// Limits that an operator sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes that a JSON value may take.
    pub max_payload_bytes: usize,
    /// The shortest time that a schedule may have between two occurrences.
    pub min_interval: Duration,
}

/// The surroundings of a change.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// Limits that an operator sets.
    pub limits: Limits,
    /// The time zone of an action that is created without one.
    pub default_timezone: Zone,
    /// What the actions of a namespace must have.
    pub demands: &'a dyn Fn(&str) -> Demands,
    /// Reads a schedule; a caller with a cache looks there first.
    pub parse_schedule: &'a dyn Fn(&str) -> Result<Arc<Schedule>, ScheduleError>,
    /// Reads an interval as the server does; None for a text that is none.
    pub parse_interval: &'a dyn Fn(&str) -> Option<Interval>,
}

impl fmt::Debug for Environment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("limits", &self.limits)
            .field("default_timezone", &self.default_timezone)
            .finish_non_exhaustive()
    }
}
