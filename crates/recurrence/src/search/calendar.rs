//! Steps on the calendar: every N days or months from an anchor, at the anchor's time of day.

use super::CivilSet;
use crate::civil::{Civil, DAY, Date, days_in_month};

/// The anchor, and every `step` days after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DaySteps {
    pub anchor: Civil,
    /// Above 0.
    pub step: u32,
}

impl DaySteps {
    fn step_seconds(&self) -> i64 {
        i64::from(self.step) * DAY
    }
}

impl CivilSet for DaySteps {
    fn at_or_after(&self, civil: Civil) -> Option<Civil> {
        let ahead = (civil.0 - self.anchor.0).max(0);
        let step = self.step_seconds();
        let steps = ahead / step + i64::from(ahead % step != 0);
        Some(Civil(self.anchor.0 + steps * step))
    }

    fn at_or_before(&self, civil: Civil) -> Option<Civil> {
        let ahead = civil.0 - self.anchor.0;
        (ahead >= 0).then(|| Civil(civil.0 - ahead % self.step_seconds()))
    }

    fn count(&self, first: Civil, last: Civil, _cap: u64) -> u64 {
        let up_to = |civil: Civil| match civil < self.anchor {
            true => 0,
            false => ((civil.0 - self.anchor.0) / self.step_seconds() + 1) as u64,
        };
        up_to(last).saturating_sub(up_to(Civil(first.0 - 1)))
    }
}

/// The anchor, and every `step` months after it, on the anchor's day of the month or the last day
/// of a shorter one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MonthSteps {
    pub anchor: Civil,
    /// Above 0.
    pub step: u32,
}

/// Months since year 0.
pub(crate) fn month_number(date: Date) -> i64 {
    i64::from(date.year) * 12 + i64::from(date.month) - 1
}

/// The day `day` of a month, or its last day if it is shorter.
pub(crate) fn clamped_day(month_number: i64, day: u8) -> i64 {
    let year = month_number.div_euclid(12) as i32;
    let month = month_number.rem_euclid(12) as u8 + 1;
    Date::new(year, month, day.min(days_in_month(year, month))).days()
}

impl MonthSteps {
    /// The `index`-th reading.
    fn nth(&self, index: i64) -> Civil {
        let date = self.anchor.date();
        let month = month_number(date) + index * i64::from(self.step);
        Civil::new(clamped_day(month, date.day), self.anchor.second_of_day())
    }

    /// How many readings there are at or before `civil`.
    fn up_to(&self, civil: Civil) -> i64 {
        let months = month_number(civil.date()) - month_number(self.anchor.date());
        if months < 0 {
            return 0;
        }
        let index = months / i64::from(self.step);
        index + i64::from(self.nth(index) <= civil)
    }
}

impl CivilSet for MonthSteps {
    fn at_or_after(&self, civil: Civil) -> Option<Civil> {
        Some(self.nth(self.up_to(Civil(civil.0 - 1))))
    }

    fn at_or_before(&self, civil: Civil) -> Option<Civil> {
        let count = self.up_to(civil);
        (count > 0).then(|| self.nth(count - 1))
    }

    fn count(&self, first: Civil, last: Civil, _cap: u64) -> u64 {
        self.up_to(last)
            .saturating_sub(self.up_to(Civil(first.0 - 1))) as u64
    }
}
