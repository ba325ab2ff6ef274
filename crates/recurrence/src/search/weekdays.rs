//! Readings of week rules that list weekdays, and of month rules that name their day.

use super::CivilSet;
use super::calendar::{clamped_day, month_number};
use crate::civil::{Civil, Date, iso_weekday};
use crate::rule::{MonthDay, Weekdays};

/// Listed weekdays of every `step`-th ISO week, counted from the anchor's week.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WeekSteps {
    pub anchor: Civil,
    /// Above 0.
    pub step: u32,
    pub days: Weekdays,
}

/// Day number of the Monday of a day's week.
fn monday(days: i64) -> i64 {
    days - i64::from(iso_weekday(days)) + 1
}

impl WeekSteps {
    /// The length of a step, in days.
    fn step_days(&self) -> i64 {
        i64::from(self.step) * 7
    }

    /// The Monday of the last counted week that begins at or before a day.
    fn counted_monday(&self, days: i64) -> i64 {
        let first = monday(self.anchor.days());
        first + (days - first).div_euclid(self.step_days()) * self.step_days()
    }

    fn reading(&self, monday: i64, iso_weekday: u8) -> Civil {
        let days = monday + i64::from(iso_weekday) - 1;
        Civil::new(days, self.anchor.second_of_day())
    }

    /// The readings of the counted week that begins on `monday`.
    fn week(&self, monday: i64) -> impl DoubleEndedIterator<Item = Civil> {
        (1..=7)
            .filter(|day| self.days.contains(*day))
            .map(move |day| self.reading(monday, day))
    }
}

impl CivilSet for WeekSteps {
    fn at_or_after(&self, civil: Civil) -> Option<Civil> {
        let civil = civil.max(self.anchor);
        let monday = self.counted_monday(civil.days());
        self.week(monday)
            .chain(self.week(monday + self.step_days()))
            .find(|reading| *reading >= civil)
    }

    fn at_or_before(&self, civil: Civil) -> Option<Civil> {
        let monday = self.counted_monday(civil.days());
        self.week(monday - self.step_days())
            .chain(self.week(monday))
            .rfind(|reading| *reading <= civil)
            .filter(|reading| *reading >= self.anchor)
    }

    fn count(&self, first: Civil, last: Civil, _cap: u64) -> u64 {
        let first = first.max(self.anchor);
        if first > last {
            return 0;
        }
        let (from, to) = (
            self.counted_monday(first.days()),
            self.counted_monday(last.days()),
        );
        let between = ((to - from) / self.step_days()) as u64 * self.week(from).count() as u64;
        let before_first = self.week(from).filter(|reading| *reading < first).count() as u64;
        let up_to_last = self.week(to).filter(|reading| *reading <= last).count() as u64;
        (between + up_to_last).saturating_sub(before_first)
    }
}

/// A named day of every `step`-th month, counted from the anchor's month.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MonthDaySteps {
    pub anchor: Civil,
    /// Above 0.
    pub step: u32,
    pub day: MonthDay,
}

/// The last month that a search looks at.
const LAST_MONTH: i64 = 9999 * 12 + 11;

impl MonthDaySteps {
    /// The last counted month at or before a date's.
    fn counted_month(&self, date: Date) -> i64 {
        let first = month_number(self.anchor.date());
        let step = i64::from(self.step);
        first + (month_number(date) - first).div_euclid(step) * step
    }

    /// The reading of a month; `None` where it has none.
    fn reading(&self, month: i64) -> Option<Civil> {
        let days = match self.day {
            MonthDay::Day(day) => clamped_day(month, day),
            MonthDay::NthWeekday { nth, weekday } => {
                let first = clamped_day(month, 1);
                let ahead = (7 + weekday - iso_weekday(first)) % 7 + 7 * (nth - 1);
                let days = first + i64::from(ahead);
                (month_number(Date::from_days(days)) == month).then_some(days)?
            }
            MonthDay::LastWeekday { weekday } => {
                let last = clamped_day(month, 31);
                last - i64::from((7 + iso_weekday(last) - weekday) % 7)
            }
        };
        Some(Civil::new(days, self.anchor.second_of_day()))
            .filter(|reading| *reading >= self.anchor)
    }
}

impl CivilSet for MonthDaySteps {
    fn at_or_after(&self, civil: Civil) -> Option<Civil> {
        let civil = civil.max(self.anchor);
        let mut month = self.counted_month(civil.date());
        // The fifth of a weekday in February is the rarest: 28 or 40 years apart.
        while month <= LAST_MONTH {
            if let Some(reading) = self.reading(month).filter(|reading| *reading >= civil) {
                return Some(reading);
            }
            month += i64::from(self.step);
        }
        None
    }

    fn at_or_before(&self, civil: Civil) -> Option<Civil> {
        let first = month_number(self.anchor.date());
        let mut month = self.counted_month(civil.date());
        while month >= first {
            if let Some(reading) = self.reading(month).filter(|reading| *reading <= civil) {
                return Some(reading);
            }
            month -= i64::from(self.step);
        }
        None
    }

    fn count(&self, first: Civil, last: Civil, cap: u64) -> u64 {
        let first = first.max(self.anchor);
        let mut month = self.counted_month(first.date());
        let last_month = month_number(last.date()).min(LAST_MONTH);
        let mut count = 0;
        while month <= last_month && count < cap {
            let in_range = |reading: &Civil| (first..=last).contains(reading);
            count += u64::from(self.reading(month).filter(in_range).is_some());
            month += i64::from(self.step);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Kind, Schedule};

    #[test]
    fn no_reading_is_before_the_anchor() {
        let text = r#"{"every":1,"unit":"week","days_of_week":["mon","fri"]}"#;
        let Kind::Rule(rule) = Schedule::parse(text).unwrap().kind().clone() else {
            panic!("a rule");
        };
        // A Wednesday: the Monday of its week is too early.
        let anchor = Civil::new(Date::new(2027, 1, 6).days(), 0);
        let week = WeekSteps {
            anchor,
            step: 1,
            days: rule.days_of_week().unwrap(),
        };
        let friday = Civil::new(Date::new(2027, 1, 8).days(), 0);
        let long_before = Civil::new(Date::new(2026, 12, 1).days(), 0);
        assert_eq!(week.at_or_after(long_before), Some(friday));
        assert_eq!(week.at_or_before(Civil(friday.0 - 1)), None);
        assert_eq!(week.count(long_before, friday, u64::MAX), 1);
    }
}
