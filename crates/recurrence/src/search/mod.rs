//! Searches: from sets of wall-clock readings, and from steps of elapsed time, to instants.

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
    /// The first reading of the set at or after `civil`.
    fn at_or_after(&self, civil: Civil) -> Option<Civil>;
    /// The last reading of the set at or before `civil`.
    fn at_or_before(&self, civil: Civil) -> Option<Civil>;
    /// How many readings there are from `first` to `last`, both included; may stop counting at `cap`.
    fn count(&self, first: Civil, last: Civil, cap: u64) -> u64;
}

/// A set of instants that can be searched in both directions, in Unix seconds.
pub(crate) trait InstantSet {
    /// The first instant of the set strictly after `instant`.
    fn next_after(&self, instant: i64) -> Option<Hit>;
    /// The last instant of the set at or before `instant`.
    fn last_at_or_before(&self, instant: i64) -> Option<Hit>;
    /// How many instants there are after `after` and up to `until`; may stop counting at `cap`.
    fn count_between(&self, after: i64, until: i64, cap: u64) -> u64;
}

/// How missing and repeated readings are resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    pub on_gap: OnGap,
    pub on_fold: OnFold,
}

impl Policy {
    /// The policy that keeps the real-time cadence of a stepping pattern: it skips missing readings,
    /// and runs on both passes of repeated ones.
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

/// How the instant results from the reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Plain,
    MovedOutOfGap { wanted: Civil },
    FirstOfFold,
    SecondOfFold,
}
