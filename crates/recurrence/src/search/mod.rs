//! From sets of wall-clock readings, and from steps of elapsed time, to instants.

pub(crate) mod calendar;
pub(crate) mod elapsed;
pub(crate) mod filtered;
pub(crate) mod mixed;
pub(crate) mod wall_clock;
pub(crate) mod weekdays;

use crate::civil::Civil;
use crate::policy::{OnFold, OnGap};

/// A set of wall-clock readings that can be searched in both directions.
pub(crate) trait CivilSet {
    fn at_or_after(&self, civil: Civil) -> Option<Civil>;
    fn at_or_before(&self, civil: Civil) -> Option<Civil>;
    /// How many there are from `first` to `last`, both included; may stop counting at `cap`.
    fn count(&self, first: Civil, last: Civil, cap: u64) -> u64;
}

/// A set of instants that can be searched in both directions, in Unix seconds.
pub(crate) trait InstantSet {
    fn next_after(&self, instant: i64) -> Option<Hit>;
    fn last_at_or_before(&self, instant: i64) -> Option<Hit>;
    /// How many there are after one instant and up to another; may stop counting at `cap`.
    fn count_between(&self, after: i64, until: i64, cap: u64) -> u64;
}

/// What happens to missing and repeated readings. A pattern that keeps its real-time cadence
/// skips the missing ones and runs through the repeated ones twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    pub on_gap: OnGap,
    pub on_fold: OnFold,
}

impl Policy {
    pub const CADENCE: Policy = Policy {
        on_gap: OnGap::Skip,
        on_fold: OnFold::Both,
    };
}

/// An occurrence in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Unix seconds.
    pub at: i64,
    /// What the wall clock shows.
    pub civil: Civil,
    pub cause: Cause,
}

/// How the instant came from the reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Plain,
    MovedOutOfGap { wanted: Civil },
    FirstOfFold,
    SecondOfFold,
}
