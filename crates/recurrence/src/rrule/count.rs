//! How many occurrences are in a range, without visiting each of them.

use super::CompiledRuleSet;
use super::rule::Freq;
use super::search::{MAX_STEPS, Pattern, Search};
use super::times::{ALL_HOURS, ALL_SIXTY};
use crate::civil::{Civil, DAY};

impl CompiledRuleSet {
    /// The number of occurrences from `first` to `last`, both included, counting no further than `cap`.
    ///
    /// Rules that visit every period are counted by the month, and rules that step evenly through the day
    /// by division. All others (BYSETPOS, an INTERVAL among chosen times) are visited one by one.
    pub fn count_between(&self, first: Civil, last: Civil, cap: u64) -> u64 {
        let mut search = Search::new(&self.pattern, MAX_STEPS);
        let in_range = |times: &[Civil]| {
            let from = times.partition_point(|time| *time < first);
            times[from..]
                .iter()
                .copied()
                .take_while(|time| *time <= last)
                .collect::<Vec<_>>()
        };
        let (excluded, added) = (in_range(&self.excluded), in_range(&self.added));
        let removed = excluded.iter().filter(|time| self.is_ruled(**time)).count() as u64;
        let joined = added
            .iter()
            .filter(|time| !self.is_ruled(**time) && !self.is_excluded(**time))
            .count() as u64;
        let ruled = match self.span {
            Some((start, end)) => {
                let cap = cap.saturating_add(removed);
                search.count(first.max(start), last.min(end), cap)
            }
            None => 0,
        };
        (ruled - removed.min(ruled) + joined).min(cap)
    }

    /// Whether the rule itself yields this time.
    fn is_ruled(&self, at: Civil) -> bool {
        self.span.is_some_and(|(first, end)| {
            first <= at
                && at <= end
                && Search::new(&self.pattern, MAX_STEPS)
                    .at_or_after(at, at)
                    .is_some()
        })
    }
}

impl Search<'_> {
    fn count(&mut self, from: Civil, to: Civil, cap: u64) -> u64 {
        let mut count = 0;
        let mut at = from;
        while count < cap && at <= to {
            self.steps_left = MAX_STEPS;
            let Some(found) = self.at_or_after(at, to) else {
                break;
            };
            let (in_span, end) = self.count_span(found, to);
            count += in_span;
            at = Civil(end.0 + 1);
        }
        count.min(cap)
    }

    /// A count of occurrences from `found`, which is one, to the end of a span that needs no visits; and
    /// that end.
    fn count_span(&mut self, found: Civil, to: Civil) -> (u64, Civil) {
        let pattern = self.pattern;
        if !pattern.set_positions.is_empty() {
            return (1, found);
        }
        let times = pattern.times;
        if pattern.cadence.interval() == 1
            && let Some(month) = self.month_of(found.days())
        {
            let end = to.min(Civil(month.end * DAY - 1));
            let before = |at: Civil| {
                let day = at.days() - month.first;
                let days = u64::from(month.mask) & ((1 << day) - 1);
                let today = u64::from(month.mask) >> day & 1;
                i64::from(days.count_ones()) * times.count()
                    + today as i64 * times.count_before(at.second_of_day())
            };
            return ((before(Civil(end.0 + 1)) - before(found)) as u64, end);
        }
        if pattern.cadence.freq() > Freq::Daily {
            return match even_steps(pattern, found) {
                Some((step, end)) => {
                    let end = end.min(to);
                    (((end.0 - found.0) / step + 1) as u64, end)
                }
                None => (1, found),
            };
        }
        let end = to.min(end_of(found, DAY));
        let upto = times.count_before(end.second_of_day() + 1);
        (
            (upto - times.count_before(found.second_of_day())) as u64,
            end,
        )
    }
}

/// The step of a cadence of hours, minutes or seconds, and the end of the span from an occurrence on in
/// which every step is an occurrence. `None` when a period has several times.
fn even_steps(pattern: &Pattern, found: Civil) -> Option<(i64, Civil)> {
    let times = pattern.times;
    let in_period = pattern.cadence.times_in_period(times, found);
    if in_period.count() != 1 {
        return None;
    }
    let (unit, every_minute, every_second) = match pattern.cadence.freq() {
        Freq::Hourly => (3_600, true, true),
        Freq::Minutely => (60, times.minutes == ALL_SIXTY, true),
        _ => (1, times.minutes == ALL_SIXTY, times.seconds == ALL_SIXTY),
    };
    let end = match (times.hours == ALL_HOURS, every_minute, every_second) {
        (true, true, true) if pattern.days.are_all() => Civil(i64::MAX),
        (true, true, true) => end_of(found, DAY),
        (false, true, true) => end_of(found, 3_600),
        (_, false, true) => end_of(found, 60),
        (_, _, false) => found,
    };
    Some((pattern.cadence.interval() * unit, end))
}

/// The last second of a time's day, hour or minute.
fn end_of(at: Civil, unit: i64) -> Civil {
    Civil(at.0 - at.0.rem_euclid(unit) + unit - 1)
}
