//! The next and the last occurrence of a rule, on civil values, in a bounded number of steps.
//!
//! Two conditions hold for every occurrence: its period is one that the rule visits ([`Cadence`]), and
//! its date and time of day are allowed ([`Days`], [`Times`]). Either can say where it holds next, by
//! arithmetic. A search leaps from one to the other until both hold, so it never walks through the
//! seconds of a day or the days of a month that the rule leaves out. BYSETPOS then chooses within the
//! period found.

use super::cadence::{Cadence, month_index, year_and_month};
use super::days::Days;
use super::rule::{Freq, Rule};
use super::times::{ALL_HOURS, ALL_SIXTY, Times, nth_bit};
use crate::civil::{Civil, Date};

/// 9999-12-31T23:59:59, the last time that RFC 5545 can write.
pub(super) const LAST_TIME: Civil = Civil::new(Date::new(9999, 12, 31).days(), 86_399);

/// How many steps one search may take: more than one for each day of the 400 years after which the
/// calendar repeats, and about 3 ms. Only rules that fight themselves come near it (an INTERVAL of
/// seconds that meets a single allowed second once in centuries); they count as ended.
pub(super) const MAX_STEPS: u32 = 150_000;

/// Months after which the calendar repeats, weekdays included.
const CYCLE_MONTHS: u32 = 4_800;

/// A rule tied to its anchor, without its end.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    cadence: Cadence,
    days: Days,
    times: Times,
    set_positions: Vec<i16>,
    /// Positions nearest to either end decide whether a set is large enough.
    nearest_position: i64,
}

impl Pattern {
    pub fn new(rule: &Rule, anchor: Civil) -> Self {
        let time = anchor.second_of_day();
        let set = |numbers: &[i16]| numbers.iter().fold(0u64, |set, number| set | 1 << number);
        // A part that is not given comes from the anchor above the rule's own unit, and is free below.
        let part = |numbers: &[i16], unit: Freq, all: u64, of_anchor: i64| match set(numbers) {
            0 if rule.freq < unit => 1 << of_anchor,
            0 => all,
            given => given,
        };
        Pattern {
            cadence: Cadence::new(rule, anchor),
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

    /// Is BYSETPOS out of reach in every period? Periods of a day and less all hold the same number of
    /// times, so that need not be searched for.
    pub fn sets_are_too_small(&self) -> bool {
        let sample = self
            .cadence
            .times_in_period(self.times, Civil(self.times.first()));
        self.cadence.is_within_a_day() && self.nearest_position > sample.count()
    }
}

/// One search: the steps it may still take, and the month it looked at last.
pub(super) struct Search<'p> {
    pattern: &'p Pattern,
    pub steps_left: u32,
    month: i64,
    mask: u32,
}

impl<'p> Search<'p> {
    pub fn new(pattern: &'p Pattern, steps: u32) -> Self {
        Search {
            pattern,
            steps_left: steps,
            month: i64::MIN,
            mask: 0,
        }
    }

    /// The first occurrence in `from..=end`.
    pub fn at_or_after(&mut self, from: Civil, end: Civil) -> Option<Civil> {
        let cadence = self.pattern.cadence;
        let mut at = from;
        loop {
            self.step()?;
            at = cadence.at_or_after(at);
            if at > end {
                return None;
            }
            let allowed = self
                .allowed_at_or_after(at)
                .filter(|allowed| *allowed <= end)?;
            if cadence.at_or_after(allowed) != allowed {
                at = allowed;
            } else if self.pattern.set_positions.is_empty() {
                return Some(allowed);
            } else if let Some(chosen) =
                self.chosen(allowed)?.filter(|chosen| *chosen >= from).min()
            {
                return Some(chosen).filter(|chosen| *chosen <= end);
            } else {
                at = cadence.start_of(cadence.period_of(allowed) + 1);
            }
        }
    }

    /// The last occurrence in `start..=from`.
    pub fn at_or_before(&mut self, from: Civil, start: Civil) -> Option<Civil> {
        let cadence = self.pattern.cadence;
        let mut at = from;
        loop {
            self.step()?;
            at = cadence.at_or_before(at);
            if at < start {
                return None;
            }
            let allowed = self
                .allowed_at_or_before(at)
                .filter(|allowed| *allowed >= start)?;
            if cadence.at_or_before(allowed) != allowed {
                at = allowed;
            } else if self.pattern.set_positions.is_empty() {
                return Some(allowed);
            } else if let Some(chosen) =
                self.chosen(allowed)?.filter(|chosen| *chosen <= from).max()
            {
                return Some(chosen).filter(|chosen| *chosen >= start);
            } else {
                at = Civil(cadence.start_of(cadence.period_of(allowed)).0 - 1);
            }
        }
    }

    fn step(&mut self) -> Option<()> {
        self.steps_left = self.steps_left.checked_sub(1)?;
        Some(())
    }

    /// The first allowed date and time of day at or after `at`, whatever its period.
    fn allowed_at_or_after(&mut self, at: Civil) -> Option<Civil> {
        let times = self.pattern.times;
        let (today, time) = match times.at_or_after(at.second_of_day()) {
            Some(time) => (at.days(), time),
            None => (at.days() + 1, times.first()),
        };
        let mut month = month_index(today);
        let mut candidates = self.mask_of(month)? & !0 << (Date::from_days(today).day - 1);
        for _ in 0..=CYCLE_MONTHS {
            if candidates != 0 {
                let day = month_start(month)? + i64::from(candidates.trailing_zeros());
                return Some(Civil::new(
                    day,
                    if day == today { time } else { times.first() },
                ));
            }
            month += 1;
            candidates = self.mask_of(month)?;
        }
        None
    }

    /// The last allowed date and time of day at or before `at`, whatever its period.
    fn allowed_at_or_before(&mut self, at: Civil) -> Option<Civil> {
        let times = self.pattern.times;
        let (today, time) = match times.at_or_before(at.second_of_day()) {
            Some(time) => (at.days(), time),
            None => (at.days() - 1, times.last()),
        };
        let mut month = month_index(today);
        let mut candidates = self.mask_of(month)? & !0 >> (32 - Date::from_days(today).day);
        for _ in 0..=CYCLE_MONTHS {
            if candidates != 0 {
                let day = month_start(month)? + i64::from(candidates.ilog2());
                return Some(Civil::new(
                    day,
                    if day == today { time } else { times.last() },
                ));
            }
            month -= 1;
            candidates = self.mask_of(month)?;
        }
        None
    }

    /// The allowed days of a month. Consecutive questions are mostly about the same month.
    fn mask_of(&mut self, month: i64) -> Option<u32> {
        if month != self.month {
            self.step()?;
            let (year, month_of_year) = year_and_month(month)?;
            self.mask = self.pattern.days.of_month(year, month_of_year);
            self.month = month;
        }
        Some(self.mask)
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
        for (slot, month) in set
            .months
            .iter_mut()
            .zip(month_index(first)..=month_index(last))
        {
            let start = month_start(month)?;
            let mut mask = u64::from(self.mask_of(month)?);
            mask &= !0 << (first - start).max(0);
            mask &= (1u64 << (last - start + 1).min(32)) - 1;
            *slot = (start, mask);
        }
        Some(set)
    }
}

/// Every allowed date and time of one period, from which BYSETPOS chooses.
struct PeriodSet {
    /// (day number of the first, mask of the allowed ones) of the months that the period touches.
    months: [(i64, u64); 12],
    times: Times,
}

impl PeriodSet {
    fn count(&self) -> i64 {
        let days: u32 = self.months.iter().map(|(_, mask)| mask.count_ones()).sum();
        i64::from(days) * self.times.count()
    }

    /// The time at a place of the sorted set; `index` is less than [`PeriodSet::count`].
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

fn month_start(month: i64) -> Option<i64> {
    year_and_month(month).map(|(year, month)| Date::new(year, month, 1).days())
}
