//! The next and the last occurrence of a rule, on civil values, in a bounded number of steps.
//!
//! Two conditions hold for every occurrence: the rule visits its period ([`Cadence`]), and its date and
//! time of day are allowed ([`Days`], [`Times`]). Arithmetic gives the next time at which either holds. A
//! search alternates between the two until both hold, so it skips the seconds of a day and the days of a
//! month that the rule leaves out. BYSETPOS then chooses within the period found.

use super::cadence::{Cadence, month_index, year_and_month};
use super::days::Days;
use super::rule::{Freq, Rule};
use super::times::{ALL_HOURS, ALL_SIXTY, Times, nth_bit};
use crate::civil::{Civil, Date, days_in_month};

/// 9999-12-31T23:59:59, the last time that RFC 5545 can write.
pub(super) const LAST_TIME: Civil = Civil::new(Date::new(9999, 12, 31).days(), 86_399);

/// How many months and periods one search may visit: about 3 ms. Only contradictory rules reach the
/// limit, such as an INTERVAL of seconds that meets the one allowed second of a day once in centuries.
/// Such a rule counts as ended.
pub(super) const MAX_STEPS: u32 = 100_000;

/// Months after which the calendar repeats, weekdays included.
const CYCLE_MONTHS: i64 = 4_800;

/// A rule compiled for its anchor, without its end.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub cadence: Cadence,
    pub days: Days,
    pub times: Times,
    pub set_positions: Vec<i16>,
    /// The position nearest to either end: a set with fewer times has none of the positions.
    nearest_position: i64,
    /// After this many visited periods the calendar has repeated.
    periods_in_cycle: u32,
}

impl Pattern {
    pub fn new(rule: &Rule, anchor: Civil) -> Self {
        let time = anchor.second_of_day();
        let set = |numbers: &[i16]| numbers.iter().fold(0u64, |set, number| set | 1 << number);
        // For a unit finer than FREQ, the anchor determines a part that is not given. For the others
        // all values are allowed.
        let part = |numbers: &[i16], unit: Freq, all: u64, of_anchor: i64| match set(numbers) {
            0 if rule.freq < unit => 1 << of_anchor,
            0 => all,
            given => given,
        };
        let cadence = Cadence::new(rule, anchor);
        Pattern {
            cadence,
            periods_in_cycle: cadence.periods_in_cycle(),
            days: Days::new(rule, anchor.days()),
            times: Times {
                hours: part(&rule.hours, Freq::Hourly, ALL_HOURS.into(), time / 3_600) as u32,
                minutes: part(&rule.minutes, Freq::Minutely, ALL_SIXTY, time / 60 % 60),
                seconds: part(&rule.seconds, Freq::Secondly, ALL_SIXTY, time % 60),
            },
            set_positions: rule.set_positions.clone(),
            nearest_position: rule
                .set_positions
                .iter()
                .map(|p| i64::from(p.unsigned_abs()))
                .min()
                .unwrap_or(0),
        }
    }

    /// Whether the rule has no occurrence, where that needs no search.
    pub fn is_impossible(&self) -> bool {
        self.sets_are_too_small() || !self.cadence.meets(self.times)
    }

    /// Whether every period has fewer times than BYSETPOS needs. Periods of a day and less all have the
    /// same number of times.
    fn sets_are_too_small(&self) -> bool {
        let sample = self
            .cadence
            .times_in_period(self.times, Civil(self.times.first()));
        self.cadence.freq() >= Freq::Daily && self.nearest_position > sample.count()
    }
}

/// One search, with the steps that remain and the last month visited.
pub(super) struct Search<'p> {
    pub pattern: &'p Pattern,
    pub steps_left: u32,
    month: Month,
}

/// A month with its allowed days.
#[derive(Clone, Copy)]
pub(super) struct Month {
    /// Months since January of the year 0.
    index: i64,
    /// The day number of its first day.
    pub first: i64,
    /// The day number of the next month's first day.
    pub end: i64,
    /// The allowed days; bit 0 is the first.
    pub mask: u32,
}

impl<'p> Search<'p> {
    pub fn new(pattern: &'p Pattern, steps: u32) -> Self {
        let none_yet = Month {
            index: i64::MIN,
            first: 0,
            end: 0,
            mask: 0,
        };
        Search {
            pattern,
            steps_left: steps,
            month: none_yet,
        }
    }

    /// The first occurrence in `from..=end`.
    pub fn at_or_after(&mut self, from: Civil, end: Civil) -> Option<Civil> {
        let cadence = self.pattern.cadence;
        let mut at = cadence.at_or_after(from);
        for _ in 0..=self.pattern.periods_in_cycle {
            self.step()?;
            if at > end {
                return None;
            }
            let allowed = self
                .allowed_at_or_after(at)
                .filter(|allowed| *allowed <= end)?;
            let visited = cadence.at_or_after(allowed);
            if visited != allowed {
                at = visited;
                continue;
            }
            if self.pattern.set_positions.is_empty() {
                return Some(allowed);
            }
            let chosen = self.chosen(allowed)?.filter(|chosen| *chosen >= from).min();
            if chosen.is_some() {
                return chosen.filter(|chosen| *chosen <= end);
            }
            at = cadence.at_or_after(cadence.start_of(cadence.period_of(allowed) + 1));
        }
        None
    }

    /// The last occurrence in `start..=from`.
    pub fn at_or_before(&mut self, from: Civil, start: Civil) -> Option<Civil> {
        let cadence = self.pattern.cadence;
        let mut at = cadence.at_or_before(from);
        for _ in 0..=self.pattern.periods_in_cycle {
            self.step()?;
            if at < start {
                return None;
            }
            let allowed = self
                .allowed_at_or_before(at)
                .filter(|allowed| *allowed >= start)?;
            let visited = cadence.at_or_before(allowed);
            if visited != allowed {
                at = visited;
                continue;
            }
            if self.pattern.set_positions.is_empty() {
                return Some(allowed);
            }
            let chosen = self.chosen(allowed)?.filter(|chosen| *chosen <= from).max();
            if chosen.is_some() {
                return chosen.filter(|chosen| *chosen >= start);
            }
            at = cadence.at_or_before(Civil(cadence.start_of(cadence.period_of(allowed)).0 - 1));
        }
        None
    }

    fn step(&mut self) -> Option<()> {
        self.steps_left = self.steps_left.checked_sub(1)?;
        Some(())
    }

    /// The first allowed date and time of day at or after `at`, in any period.
    fn allowed_at_or_after(&mut self, at: Civil) -> Option<Civil> {
        let times = self.pattern.times;
        let (today, time) = match times.at_or_after(at.second_of_day()) {
            Some(time) => (at.days(), time),
            None => (at.days() + 1, times.first()),
        };
        let mut month = self.month_of(today)?;
        let mut candidates = month.mask & !0 << (today - month.first);
        let give_up = month.index + CYCLE_MONTHS;
        while month.index <= give_up {
            if candidates != 0 {
                let day = month.first + i64::from(candidates.trailing_zeros());
                let time = if day == today { time } else { times.first() };
                return Some(Civil::new(day, time));
            }
            month = self.month(self.pattern.days.month_after(month.index))?;
            candidates = month.mask;
        }
        None
    }

    /// The last allowed date and time of day at or before `at`, in any period.
    fn allowed_at_or_before(&mut self, at: Civil) -> Option<Civil> {
        let times = self.pattern.times;
        let (today, time) = match times.at_or_before(at.second_of_day()) {
            Some(time) => (at.days(), time),
            None => (at.days() - 1, times.last()),
        };
        let mut month = self.month_of(today)?;
        let mut candidates = month.mask & !0 >> (31 - (today - month.first));
        let give_up = month.index - CYCLE_MONTHS;
        while month.index >= give_up {
            if candidates != 0 {
                let day = month.first + i64::from(candidates.ilog2());
                let time = if day == today { time } else { times.last() };
                return Some(Civil::new(day, time));
            }
            month = self.month(self.pattern.days.month_before(month.index))?;
            candidates = month.mask;
        }
        None
    }

    /// The month that holds a day. Consecutive questions are mostly about the same month.
    pub fn month_of(&mut self, day: i64) -> Option<Month> {
        if (self.month.first..self.month.end).contains(&day) {
            return Some(self.month);
        }
        self.month(month_index(day))
    }

    fn month(&mut self, index: i64) -> Option<Month> {
        if index != self.month.index {
            self.step()?;
            let (year, month) = year_and_month(index)?;
            let first = Date::new(year, month, 1).days();
            self.month = Month {
                index,
                first,
                end: first + i64::from(days_in_month(year, month)),
                mask: self.pattern.days.of_month(year, month),
            };
        }
        Some(self.month)
    }

    /// What BYSETPOS chooses from the set of the period that holds `at`, in no particular order.
    fn chosen(&mut self, at: Civil) -> Option<impl Iterator<Item = Civil> + use<'p>> {
        let pattern = self.pattern;
        let set = self.set_of_period(at)?;
        let count = set.count();
        let positions: &[i16] = if pattern.nearest_position <= count {
            &pattern.set_positions
        } else {
            &[]
        };
        Some(positions.iter().filter_map(move |position| {
            let index = match i64::from(*position) {
                position if position > 0 => position - 1,
                position => count + position,
            };
            (0..count).contains(&index).then(|| set.nth(index))
        }))
    }

    fn set_of_period(&mut self, at: Civil) -> Option<PeriodSet> {
        let cadence = self.pattern.cadence;
        let period = cadence.period_of(at);
        let first = cadence.start_of(period).days();
        let last = Civil(cadence.start_of(period + 1).0 - 1).days();
        let mut set = PeriodSet {
            months: [(0, 0); 12],
            times: cadence.times_in_period(self.pattern.times, at),
        };
        let indices = month_index(first)..=month_index(last);
        for (slot, index) in set.months.iter_mut().zip(indices) {
            let month = self.month(index)?;
            let mut mask = u64::from(month.mask);
            mask &= !0 << (first - month.first).max(0);
            mask &= (1u64 << (last - month.first + 1).min(32)) - 1;
            *slot = (month.first, mask);
        }
        Some(set)
    }
}

/// Every allowed date and time of one period, from which BYSETPOS chooses.
struct PeriodSet {
    /// (day number of the first day, mask of the allowed days) of the period's months.
    months: [(i64, u64); 12],
    times: Times,
}

impl PeriodSet {
    fn count(&self) -> i64 {
        let days: u32 = self.months.iter().map(|(_, mask)| mask.count_ones()).sum();
        i64::from(days) * self.times.count()
    }

    /// The time at an index of the sorted set, which is less than [`PeriodSet::count`].
    fn nth(&self, index: i64) -> Civil {
        let mut day = index / self.times.count();
        let mut start_and_mask = self.months[0];
        for month in self.months {
            start_and_mask = month;
            let days = i64::from(month.1.count_ones());
            if day < days {
                break;
            }
            day -= days;
        }
        let (start, mask) = start_and_mask;
        Civil::new(
            start + i64::from(nth_bit(mask, day)),
            self.times.nth(index % self.times.count()),
        )
    }
}
