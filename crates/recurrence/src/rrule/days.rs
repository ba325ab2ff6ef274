//! The days of a month that a rule allows: all of its day parts together, as one bit per day.
//!
//! A rule's day parts depend only on the date, so a search needs no more than a month's mask. The
//! calendar repeats after 4,800 months, so a rule without a day in that many months has none.

use super::rule::{Freq, NthWeekday, Rule};
use crate::civil::{Date, days_in_month, is_leap, iso_weekday};

/// Numbers of at most 63, counted from the start or from the end.
#[derive(Clone, Copy, Debug, Default)]
struct FromEitherEnd {
    from_start: u64,
    from_end: u64,
}

impl FromEitherEnd {
    fn new(numbers: impl IntoIterator<Item = i16>) -> Self {
        let mut set = Self::default();
        for number in numbers {
            let side = if number > 0 {
                &mut set.from_start
            } else {
                &mut set.from_end
            };
            *side |= 1 << number.unsigned_abs();
        }
        set
    }

    fn is_empty(self) -> bool {
        self.from_start | self.from_end == 0
    }

    /// The numbers as indexes, from 0, in a range of `length` up to 31.
    fn places(self, length: i64) -> u32 {
        let from_end = (self.from_end as u32).reverse_bits() >> (31 - length);
        (self.from_start >> 1) as u32 | from_end
    }

    fn has(self, from_start: i64, from_end: i64) -> bool {
        self.from_start >> from_start & 1 == 1 || self.from_end >> from_end & 1 == 1
    }
}

/// Days of a year, counted from its start or from its end, 1 to 366.
#[derive(Clone, Debug)]
struct YearDays {
    from_start: [u64; 6],
    from_end: [u64; 6],
}

impl YearDays {
    fn new(numbers: &[i16]) -> Option<Box<Self>> {
        let mut set = YearDays {
            from_start: [0; 6],
            from_end: [0; 6],
        };
        for number in numbers {
            let side = if *number > 0 {
                &mut set.from_start
            } else {
                &mut set.from_end
            };
            let place = usize::from(number.unsigned_abs());
            side[place / 64] |= 1 << (place % 64);
        }
        (!numbers.is_empty()).then(|| Box::new(set))
    }

    fn has(&self, from_start: i64, from_end: i64) -> bool {
        let bit = |set: &[u64; 6], place: i64| set[place as usize / 64] >> (place % 64) & 1 == 1;
        bit(&self.from_start, from_start) || bit(&self.from_end, from_end)
    }
}

/// Bits 1 to 12.
const EVERY_MONTH: u16 = 0x1FFE;

/// The day parts of a rule, with the anchor's day where the rule names none.
#[derive(Clone, Debug)]
pub(super) struct Days {
    /// Bit m is month m, 1 to 12.
    months: u16,
    month_days: FromEitherEnd,
    /// Bit 0 is Monday: every such day of the period.
    weekdays: u8,
    /// The numbered weekdays, by ISO weekday.
    nth_weekdays: [FromEitherEnd; 8],
    has_nth: bool,
    has_weekdays: bool,
    /// Whether numbered weekdays are counted in the year rather than in the month.
    nth_of_year: bool,
    year_days: Option<Box<YearDays>>,
    weeks: FromEitherEnd,
    week_start: u8,
}

impl Days {
    pub fn new(rule: &Rule, anchor_days: i64) -> Self {
        let anchor = Date::from_days(anchor_days);
        let mut months = rule.months.clone();
        let mut month_days = rule.month_days.clone();
        let mut weekdays = rule.weekdays.clone();
        // The anchor determines what the rule leaves open. BYWEEKNO alone is every day of the week:
        // implementations agree on that, though RFC 5545 could mean the anchor's weekday.
        let names_a_day = !rule.week_numbers.is_empty()
            || !rule.year_days.is_empty()
            || !month_days.is_empty()
            || !weekdays.is_empty();
        if !names_a_day {
            match rule.freq {
                Freq::Yearly => {
                    month_days.push(anchor.day.into());
                    if months.is_empty() {
                        months.push(anchor.month.into());
                    }
                }
                Freq::Monthly => month_days.push(anchor.day.into()),
                Freq::Weekly => weekdays.push(NthWeekday {
                    weekday: iso_weekday(anchor_days),
                    nth: None,
                }),
                _ => {}
            }
        }
        let mut plain = 0;
        let mut nth_weekdays = [FromEitherEnd::default(); 8];
        for weekday in 1..=7 {
            let of_this_day = || weekdays.iter().filter(move |day| day.weekday == weekday);
            if of_this_day().any(|day| day.nth.is_none()) {
                plain |= 1 << (weekday - 1);
            }
            nth_weekdays[usize::from(weekday)] =
                FromEitherEnd::new(of_this_day().filter_map(|day| day.nth));
        }
        Days {
            months: if months.is_empty() {
                EVERY_MONTH
            } else {
                months.iter().fold(0, |set, month| set | 1 << month)
            },
            month_days: FromEitherEnd::new(month_days),
            weekdays: plain,
            nth_weekdays,
            has_nth: weekdays.iter().any(|day| day.nth.is_some()),
            has_weekdays: !weekdays.is_empty(),
            nth_of_year: rule.freq == Freq::Yearly && rule.months.is_empty(),
            year_days: YearDays::new(&rule.year_days),
            weeks: FromEitherEnd::new(rule.week_numbers.iter().copied()),
            week_start: rule.week_start,
        }
    }

    /// Bit d - 1 is set when day d of the month is allowed.
    pub fn of_month(&self, year: i32, month: u8) -> u32 {
        if !self.has_month(month) {
            return 0;
        }
        let length = i64::from(days_in_month(year, month));
        let first = Date::new(year, month, 1).days();
        let mut mask = ((1u64 << length) - 1) as u32;
        if !self.month_days.is_empty() {
            mask &= self.month_days.places(length);
        }
        if self.has_weekdays {
            let every = every_weekday(self.weekdays, first);
            let numbered = if self.has_nth { mask & !every } else { 0 };
            mask = mask & every | self.keep_nth(numbered, year, first, length);
        }
        if let Some(year_days) = &self.year_days {
            let offset = first - Date::new(year, 1, 1).days();
            let of = year_length(year);
            mask = keep(mask, |day| {
                year_days.has(offset + day + 1, of - offset - day)
            });
        }
        if !self.weeks.is_empty() {
            mask = keep(mask, |day| {
                let (number, of) = week_number(first + day, year, self.week_start);
                self.weeks.has(number, of + 1 - number)
            });
        }
        mask
    }

    fn keep_nth(&self, mask: u32, year: i32, first: i64, month_length: i64) -> u32 {
        let (offset, of) = if self.nth_of_year {
            (first - Date::new(year, 1, 1).days(), year_length(year))
        } else {
            (0, month_length)
        };
        keep(mask, |day| {
            let weekday = usize::from(iso_weekday(first + day));
            let place = offset + day;
            self.nth_weekdays[weekday].has(place / 7 + 1, (of - 1 - place) / 7 + 1)
        })
    }

    /// Whether every day is allowed.
    pub fn are_all(&self) -> bool {
        self.months == EVERY_MONTH
            && self.month_days.is_empty()
            && !self.has_weekdays
            && self.year_days.is_none()
            && self.weeks.is_empty()
    }

    /// The next month after this one that the rule allows.
    pub fn month_after(&self, index: i64) -> i64 {
        let allowed = |month: &i64| self.has_month(month.rem_euclid(12) as u8 + 1);
        (index + 1..=index + 12).find(allowed).unwrap_or(index + 12)
    }

    /// The last month before this one that the rule allows.
    pub fn month_before(&self, index: i64) -> i64 {
        let allowed = |month: &i64| self.has_month(month.rem_euclid(12) as u8 + 1);
        (index - 12..index)
            .rev()
            .find(allowed)
            .unwrap_or(index - 12)
    }

    fn has_month(&self, month: u8) -> bool {
        self.months >> month & 1 == 1
    }
}

/// Every such weekday (bit 0 is Monday) of a month that begins on day `first`. The bits beyond the
/// month's length have no meaning.
fn every_weekday(weekdays: u8, first: i64) -> u32 {
    let begins_on = iso_weekday(first) - 1;
    let two_weeks = u32::from(weekdays) << 7 | u32::from(weekdays);
    let week = two_weeks >> begins_on & 0x7F;
    week | week << 7 | week << 14 | week << 21 | week << 28
}

/// The days of `mask` that pass, each given as its index in the month, from 0.
fn keep(mask: u32, passes: impl Fn(i64) -> bool) -> u32 {
    let mut rest = mask;
    let mut kept = 0;
    while rest != 0 {
        let day = rest.trailing_zeros();
        rest &= rest - 1;
        kept |= u32::from(passes(day.into())) << day;
    }
    kept
}

fn year_length(year: i32) -> i64 {
    365 + i64::from(is_leap(year))
}

/// (week number, number of weeks) of a day in calendar year `year`. A week begins on `week_start` and
/// belongs to the year with at least four of its days, which may be the year before or after.
fn week_number(days: i64, year: i32, week_start: u8) -> (i64, i64) {
    let this = first_week(year, week_start);
    let next = first_week(year + 1, week_start);
    let (start, end) = if days < this {
        (first_week(year - 1, week_start), this)
    } else if days < next {
        (this, next)
    } else {
        (next, first_week(year + 2, week_start))
    };
    ((days - start) / 7 + 1, (end - start) / 7)
}

/// The first day of week 1.
fn first_week(year: i32, week_start: u8) -> i64 {
    // Week 1 has 4 January in it.
    let fourth = Date::new(year, 1, 4).days();
    let into_week = (i64::from(iso_weekday(fourth)) - i64::from(week_start)).rem_euclid(7);
    fourth - into_week
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::civil::iso_week;

    #[test]
    fn weeks_that_begin_on_monday_are_iso_weeks() {
        for days in 0..146_097 {
            let year = Date::from_days(days).year;
            let (number, of) = week_number(days, year, 1);
            let (iso_year, iso_number) = iso_week(days);
            assert_eq!(number, i64::from(iso_number));
            let last = Date::new(iso_year, 12, 28).days();
            assert_eq!(of, i64::from(iso_week(last).1));
        }
    }
}
