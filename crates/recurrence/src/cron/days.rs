//! The days of a month that a cron expression matches, as a bit set.

use super::field::{Field, FieldKind, Item};
use crate::civil::{days_in_month, iso_weekday};

/// The two day fields of an expression, compiled to bit sets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DayRule {
    /// Bit `d - 1` is day `d`.
    pub month_days: u32,
    /// Days with a `W`.
    pub nearest_weekdays: u32,
    pub last_day: bool,
    pub last_weekday: bool,
    /// Bit 0 is Sunday.
    pub weekdays: u8,
    pub nth_weekdays: [u8; 5],
    pub last_weekdays: u8,
    combine: Combine,
}

/// How the two day fields combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Combine {
    EveryDay,
    DayOfMonth,
    DayOfWeek,
    Either,
    Both,
}

/// One bit for each of the five weeks of a month: a week multiplied by it is repeated five times.
const EACH_WEEK: u64 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28;

impl DayRule {
    pub fn new(day_of_month: &Field, day_of_week: &Field, both: bool) -> DayRule {
        let combine = match (day_of_month.is_any(), day_of_week.is_any()) {
            (true, true) => Combine::EveryDay,
            (false, true) => Combine::DayOfMonth,
            (true, false) => Combine::DayOfWeek,
            (false, false) if both => Combine::Both,
            (false, false) => Combine::Either,
        };
        let mut rule = DayRule {
            month_days: 0,
            nearest_weekdays: 0,
            last_day: false,
            last_weekday: false,
            weekdays: 0,
            nth_weekdays: [0; 5],
            last_weekdays: 0,
            combine,
        };
        for item in day_of_month.items() {
            match *item {
                Item::LastDay => rule.last_day = true,
                Item::LastWeekday => rule.last_weekday = true,
                Item::NearestWeekday(day) => rule.nearest_weekdays |= 1 << (day - 1),
                plain => rule.month_days |= (values(FieldKind::DayOfMonth, plain) >> 1) as u32,
            }
        }
        for item in day_of_week.items() {
            match *item {
                Item::Nth { first, last, nth } => {
                    rule.nth_weekdays[usize::from(nth - 1)] |= week(Item::Range { first, last });
                }
                Item::Last { first, last } => {
                    rule.last_weekdays |= week(Item::Range { first, last });
                }
                plain => rule.weekdays |= week(plain),
            }
        }
        rule
    }

    /// The matching days of a month whose first day is day number `first`: bit `d - 1` for day
    /// `d`.
    pub fn month(&self, year: i32, month: u8, first: i64) -> u32 {
        let length = u32::from(days_in_month(year, month));
        let all = u32::MAX >> (32 - length);
        let matching = match self.combine {
            Combine::EveryDay => return all,
            Combine::DayOfMonth => self.by_day_of_month(first, length),
            Combine::DayOfWeek => self.by_day_of_week(first, length),
            Combine::Either => {
                self.by_day_of_month(first, length) | self.by_day_of_week(first, length)
            }
            Combine::Both => {
                self.by_day_of_month(first, length) & self.by_day_of_week(first, length)
            }
        };
        matching & all
    }

    fn by_day_of_month(&self, first: i64, length: u32) -> u32 {
        let mut days = self.month_days;
        if self.last_day {
            days |= 1 << (length - 1);
        }
        if self.last_weekday {
            let last = match iso_weekday(first + i64::from(length) - 1) {
                6 => length - 1,
                7 => length - 2,
                _ => length,
            };
            days |= 1 << (last - 1);
        }
        let mut wanted = self.nearest_weekdays & (u32::MAX >> (32 - length));
        while wanted != 0 {
            let day = wanted.trailing_zeros() + 1;
            wanted &= wanted - 1;
            days |= 1 << (nearest_weekday(day, first, length) - 1);
        }
        days
    }

    fn by_day_of_week(&self, first: i64, length: u32) -> u32 {
        // Bit 0 of a week is Sunday; rotate it so that bit 0 is the weekday of the first.
        let rotation = u32::from(iso_weekday(first) % 7);
        let from_first = |week: u8| ((week >> rotation) | (week << (7 - rotation))) as u64 & 0x7f;
        let mut days = from_first(self.weekdays) * EACH_WEEK;
        for (index, week) in self.nth_weekdays.iter().enumerate() {
            if *week != 0 {
                days |= from_first(*week) << (7 * index);
            }
        }
        if self.last_weekdays != 0 {
            let last_seven = (1 << length) - (1 << (length - 7));
            days |= (from_first(self.last_weekdays) * EACH_WEEK) & last_seven;
        }
        days as u32
    }
}

/// `W`: a Saturday moves to Friday and a Sunday to Monday, without leaving the month.
fn nearest_weekday(day: u32, first: i64, length: u32) -> u32 {
    match iso_weekday(first + i64::from(day) - 1) {
        6 if day == 1 => 3,
        6 => day - 1,
        7 if day == length => day - 2,
        7 => day + 1,
        _ => day,
    }
}

/// The values of an item of a field whose values are below 64, as bits.
pub(super) fn values(kind: FieldKind, item: Item) -> u64 {
    let (min, max) = kind.range();
    let (first, last, step) = match item {
        Item::Any => (min, max, 1),
        Item::AnyStep { step } => (min, max, step),
        Item::Value(value) => (value, value, 1),
        Item::Range { first, last } => (first, last, 1),
        Item::RangeStep { first, last, step } => (first, last, step),
        // Only the day fields have these, and `DayRule::new` reads them.
        Item::NearestWeekday(_)
        | Item::Nth { .. }
        | Item::Last { .. }
        | Item::LastDay
        | Item::LastWeekday => return 0,
    };
    (first..=last)
        .step_by(usize::from(step))
        .fold(0, |bits, value| bits | 1 << value)
}

/// The weekdays of an item: bit 0 is Sunday, and so is 7.
fn week(item: Item) -> u8 {
    let bits = values(FieldKind::DayOfWeek, item);
    (bits as u8 & 0x7f) | (bits >> 7) as u8
}
