//! Steps of whole days and elapsed time, such as a day and a half.

use super::wall_clock::hit_at;
use super::{Hit, InstantSet, Policy};
use crate::civil::{Civil, DAY};
use crate::policy::{OnFold, OnGap};
use crate::zone::{Reading, ZoneTable};

/// The `n`-th occurrence is the anchor's time of day `n * days` days later, and `n * seconds`
/// elapsed seconds after that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MixedSteps {
    /// The anchor in Unix seconds: the first occurrence, in either pass of a repeated hour.
    pub start: i64,
    /// The anchor on the wall clock.
    pub anchor: Civil,
    /// Above 0.
    pub days: u32,
    /// Above 0.
    pub seconds: u32,
}

impl MixedSteps {
    /// The `index`-th instant, in Unix seconds, and whether a gap removes it.
    fn nth(&self, table: &ZoneTable, policy: Policy, index: i64) -> (i64, bool) {
        if index == 0 {
            return (self.start, false);
        }
        let civil = Civil(self.anchor.0 + index * i64::from(self.days) * DAY);
        let (at, is_skipped) = match table.read(civil) {
            Reading::Once(at) => (at, false),
            Reading::Missing(gap) => (gap.at, policy.on_gap == OnGap::Skip),
            // One step has one instant: `both` is the same as `first` here.
            Reading::Twice(fold) => {
                let offset = match policy.on_fold {
                    OnFold::Second => fold.after,
                    OnFold::First | OnFold::Both => fold.before,
                };
                (civil.0 - i64::from(offset), false)
            }
        };
        (at + index * i64::from(self.seconds), is_skipped)
    }

    fn step(&self) -> i64 {
        i64::from(self.days) * DAY + i64::from(self.seconds)
    }

    /// How many instants there are at or before one, skipped ones included. The instants increase: a
    /// clock change shifts days by at most a day, and the step is longer.
    fn up_to(&self, table: &ZoneTable, policy: Policy, instant: i64) -> i64 {
        let elapsed = instant - self.start;
        let mut count = (elapsed.div_euclid(self.step()) - 1).max(0);
        while self.nth(table, policy, count).0 <= instant {
            count += 1;
        }
        count
    }

    /// The steps whose readings are in a range.
    fn indexes_between(&self, first: Civil, end: Civil) -> std::ops::Range<i64> {
        let step = i64::from(self.days) * DAY;
        let ceiling = |civil: Civil| (civil.0 - self.anchor.0 + step - 1).div_euclid(step);
        ceiling(first)..ceiling(end)
    }
}

/// Mixed steps in a zone.
pub(crate) struct MixedInstants<'a> {
    pub steps: MixedSteps,
    pub table: &'a ZoneTable,
    pub policy: Policy,
}

impl MixedInstants<'_> {
    fn up_to(&self, instant: i64) -> i64 {
        self.steps.up_to(self.table, self.policy, instant)
    }

    /// The `index`-th instant, unless a gap removes it.
    fn nth(&self, index: i64) -> Option<Hit> {
        let (at, is_skipped) = self.steps.nth(self.table, self.policy, index);
        (!is_skipped).then(|| hit_at(self.table, at))
    }
}

impl InstantSet for MixedInstants<'_> {
    fn next_after(&self, instant: i64) -> Option<Hit> {
        (self.up_to(instant)..).find_map(|index| self.nth(index))
    }

    fn last_at_or_before(&self, instant: i64) -> Option<Hit> {
        (0..self.up_to(instant))
            .rev()
            .find_map(|index| self.nth(index))
    }

    fn count_between(&self, after: i64, until: i64, _cap: u64) -> u64 {
        let range = self.up_to(after)..self.up_to(until);
        let skipped = match self.policy.on_gap {
            OnGap::RollForward => 0,
            // Only readings inside a gap are skipped.
            OnGap::Skip => self
                .table
                .transitions()
                .iter()
                .filter(|t| t.is_gap())
                .flat_map(|t| self.steps.indexes_between(t.low(), t.high()))
                .filter(|index| range.contains(index))
                .count() as i64,
        };
        (range.end - range.start - skipped).max(0) as u64
    }
}
