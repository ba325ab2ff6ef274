//! Steps restricted by a filter.

use super::elapsed::ElapsedSteps;
use super::wall_clock::hit_at;
use super::{CivilSet, Hit, InstantSet};
use crate::civil::{Civil, DAY, Date};
use crate::rule::Filter;
use crate::zone::{Reading, ZoneTable};

/// How many candidates, or spans of them, a search tries before it concludes that nothing passes.
/// Weekdays, hours and a step in minutes repeat after at most 10,080 steps, week parity after at most
/// seven years. Trying this many takes a few milliseconds.
const MAX_STEPS: u32 = 50_000;

/// The end of the calendar.
const LAST: Civil = Civil::new(Date::new(9999, 12, 31).days(), DAY - 1);

/// Wall-clock readings that pass a filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilteredReadings<'a, S> {
    pub set: &'a S,
    pub filter: Filter,
    pub table: &'a ZoneTable,
}

impl<S: CivilSet> FilteredReadings<'_, S> {
    fn passes(&self, civil: Civil) -> bool {
        // The filter applies to what the clock shows at the occurrence, which is later than the
        // reading where a gap removes the reading.
        let shown = match self.table.read(civil) {
            Reading::Missing(gap) => gap.high(),
            Reading::Once(_) | Reading::Twice(_) => civil,
        };
        self.filter.passes(shown)
    }

    /// Where to search on after a reading that does not pass. All readings have the same time of
    /// day: where it is outside the hours, only a gap can move an occurrence into them.
    fn next_try(&self, rejected: Civil) -> Option<Civil> {
        let next = Civil(rejected.0 + 1);
        match self.filter.passes_hour(rejected) {
            true => Some(next),
            false => Some(self.table.gap_at_or_after(next)?.low().max(next)),
        }
    }

    /// The same, backward.
    fn previous_try(&self, rejected: Civil) -> Option<Civil> {
        let previous = Civil(rejected.0 - 1);
        match self.filter.passes_hour(rejected) {
            true => Some(previous),
            false => {
                let gap = self.table.gap_at_or_before(previous)?;
                Some(Civil(gap.high().0 - 1).min(previous))
            }
        }
    }
}

impl<S: CivilSet> CivilSet for FilteredReadings<'_, S> {
    fn at_or_after(&self, civil: Civil) -> Option<Civil> {
        let mut from = civil;
        for _ in 0..MAX_STEPS {
            let candidate = self.set.at_or_after(from)?;
            if candidate > LAST {
                return None;
            }
            if self.passes(candidate) {
                return Some(candidate);
            }
            from = self.next_try(candidate)?;
        }
        None
    }

    fn at_or_before(&self, civil: Civil) -> Option<Civil> {
        let mut from = civil;
        for _ in 0..MAX_STEPS {
            let candidate = self.set.at_or_before(from)?;
            if self.passes(candidate) {
                return Some(candidate);
            }
            from = self.previous_try(candidate)?;
        }
        None
    }

    fn count(&self, first: Civil, last: Civil, cap: u64) -> u64 {
        let mut count = 0;
        let mut from = first;
        while count < cap {
            match self.at_or_after(from) {
                Some(reading) if reading <= last => {
                    count += 1;
                    from = Civil(reading.0 + 1);
                }
                _ => break,
            }
        }
        count
    }
}

/// Steps of elapsed time that pass a filter on the local clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilteredSteps<'a> {
    pub steps: ElapsedSteps,
    pub filter: Filter,
    pub table: &'a ZoneTable,
}

/// A range of instants, both ends included, of which all pass the filter or none does.
struct Span {
    first: i64,
    last: i64,
    passes: bool,
}

impl FilteredSteps<'_> {
    /// The span around an instant. It ends where the filter's answer may change, and where the clocks
    /// are set.
    fn span(&self, instant: i64) -> Span {
        let index = self.table.index_after(instant);
        let offset = i64::from(self.table.offset_before(index));
        let civil = Civil(instant + offset);
        let (start, end) = self.filter.span(civil);
        let transitions = self.table.transitions();
        let previous = index.checked_sub(1).and_then(|i| transitions.get(i));
        let next = transitions.get(index);
        Span {
            first: (start.0 - offset).max(previous.map_or(i64::MIN, |t| t.at)),
            last: (end.0 - offset).min(next.map_or(i64::MAX, |t| t.at)) - 1,
            passes: self.filter.passes(civil),
        }
    }

    fn candidate_after(&self, instant: i64) -> Option<i64> {
        let mut after = instant;
        for _ in 0..MAX_STEPS {
            let candidate = self.steps.next_after(after)?;
            let span = self.span(candidate);
            if span.passes {
                return Some(candidate);
            }
            after = span.last;
        }
        None
    }

    fn candidate_at_or_before(&self, instant: i64) -> Option<i64> {
        let mut until = instant;
        for _ in 0..MAX_STEPS {
            let candidate = self.steps.last_at_or_before(until)?;
            let span = self.span(candidate);
            if span.passes {
                return Some(candidate);
            }
            until = span.first - 1;
        }
        None
    }
}

impl InstantSet for FilteredSteps<'_> {
    fn next_after(&self, instant: i64) -> Option<Hit> {
        let at = match self.filter.is_empty() {
            true => self.steps.next_after(instant),
            false => self.candidate_after(instant),
        };
        at.map(|at| hit_at(self.table, at))
    }

    fn last_at_or_before(&self, instant: i64) -> Option<Hit> {
        let at = match self.filter.is_empty() {
            true => self.steps.last_at_or_before(instant),
            false => self.candidate_at_or_before(instant),
        };
        at.map(|at| hit_at(self.table, at))
    }

    fn count_between(&self, after: i64, until: i64, cap: u64) -> u64 {
        if self.filter.is_empty() {
            return self.steps.count_between(after, until).min(cap);
        }
        let mut count = 0;
        let mut after = after;
        while count < cap {
            match self.candidate_after(after) {
                Some(at) if at <= until => {
                    let last = self.span(at).last.min(until);
                    count += self.steps.count_between(at - 1, last);
                    after = last;
                }
                _ => break,
            }
        }
        count.min(cap)
    }
}
