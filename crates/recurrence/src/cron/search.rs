//! The search for matching wall-clock readings, on bit sets.
//!
//! A day is looked up in its month's bit set, a time of day in the sets of hours, minutes and
//! seconds. Months that don't match are skipped, so the rarest date (29 February on a given weekday,
//! at most 40 years apart) takes a few dozen steps.

use super::Sets;
use crate::civil::{Civil, DAY, Date};

/// The years with four digits, which bound every search.
const FIRST_YEAR: i32 = 1;
const LAST_YEAR: i32 = 9999;

/// The first and the last reading of those years.
const FIRST: Civil = Civil::new(Date::new(FIRST_YEAR, 1, 1).days(), 0);
const LAST: Civil = Civil::new(Date::new(LAST_YEAR, 12, 31).days(), DAY - 1);

pub(super) fn at_or_after(sets: &Sets, civil: Civil) -> Option<Civil> {
    let civil = civil.max(FIRST);
    if civil > LAST {
        return None;
    }
    let days = civil.days();
    if let Some(time) = sets.time_at_or_after(civil.second_of_day())
        && sets.matches_day(days)
    {
        return Some(Civil::new(days, time));
    }
    let day = match sets.every_day {
        true => days + 1,
        false => next_day(sets, Date::from_days(days + 1), LAST_YEAR)?,
    };
    Some(Civil::new(day, sets.first_time()))
}

pub(super) fn at_or_before(sets: &Sets, civil: Civil) -> Option<Civil> {
    let civil = civil.min(LAST);
    if civil < FIRST {
        return None;
    }
    let days = civil.days();
    if let Some(time) = sets.time_at_or_before(civil.second_of_day())
        && sets.matches_day(days)
    {
        return Some(Civil::new(days, time));
    }
    let day = match sets.every_day {
        true => days - 1,
        false => previous_day(sets, Date::from_days(days - 1))?,
    };
    Some(Civil::new(day, sets.last_time()))
}

/// The first matching day at or after a date, not after the end of `last_year`.
pub(super) fn next_day(sets: &Sets, from: Date, last_year: i32) -> Option<i64> {
    let mut year = from.year;
    let mut month = from.month;
    // Only the first month is searched from its middle.
    let mut later_days = u32::MAX << (from.day - 1);
    loop {
        year = match sets.year_at_or_after(year) {
            Some(next) if next > last_year => return None,
            Some(next) if next > year => {
                month = 1;
                later_days = u32::MAX;
                next
            }
            Some(same) => same,
            None => return None,
        };
        let rest = u32::from(sets.months) >> (month - 1);
        if rest == 0 {
            year += 1;
            month = 1;
            later_days = u32::MAX;
            continue;
        }
        let skipped = rest.trailing_zeros() as u8;
        if skipped > 0 {
            month += skipped;
            later_days = u32::MAX;
        }
        let first = Date::new(year, month, 1).days();
        let days = sets.days.month(year, month, first) & later_days;
        if days != 0 {
            return Some(first + i64::from(days.trailing_zeros()));
        }
        later_days = u32::MAX;
        month += 1;
        if month > 12 {
            month = 1;
            year += 1;
        }
    }
}

/// The last matching day at or before a date.
fn previous_day(sets: &Sets, from: Date) -> Option<i64> {
    let mut year = from.year;
    let mut month = from.month;
    let mut earlier_days = u32::MAX >> (32 - u32::from(from.day));
    loop {
        year = match sets.year_at_or_before(year) {
            Some(previous) if previous < FIRST_YEAR => return None,
            Some(previous) if previous < year => {
                month = 12;
                earlier_days = u32::MAX;
                previous
            }
            Some(same) => same,
            None => return None,
        };
        let rest = sets.months & (u16::MAX >> (16 - u16::from(month)));
        if rest == 0 {
            year -= 1;
            month = 12;
            earlier_days = u32::MAX;
            continue;
        }
        let found = 16 - rest.leading_zeros() as u8;
        if found < month {
            month = found;
            earlier_days = u32::MAX;
        }
        let first = Date::new(year, month, 1).days();
        let days = sets.days.month(year, month, first) & earlier_days;
        if days != 0 {
            return Some(first + i64::from(31 - days.leading_zeros()));
        }
        earlier_days = u32::MAX;
        month -= 1;
        if month == 0 {
            month = 12;
            year -= 1;
        }
    }
}

/// How many matches there are from `first` to `last`, both included; at least `cap` where there are
/// more.
pub(super) fn count(sets: &Sets, first: Civil, last: Civil, cap: u64) -> u64 {
    let (first, last) = (first.max(FIRST), last.min(LAST));
    if first > last {
        return 0;
    }
    // All times of the matching days, less those before `first` and after `last`. Two days above the
    // cap make up for the subtracted times.
    let days = count_days(sets, first.date(), last.date(), cap.saturating_add(2));
    let mut count = days * sets.times_before(DAY);
    if sets.matches_day(first.days()) {
        count -= sets.times_before(first.second_of_day());
    }
    if sets.matches_day(last.days()) {
        count -= sets.times_before(DAY) - sets.times_before(last.second_of_day() + 1);
    }
    count
}

/// Matching days from one date to another, both included, or the first `enough` of them.
fn count_days(sets: &Sets, from: Date, to: Date, enough: u64) -> u64 {
    if sets.every_day {
        return (to.days() - from.days() + 1).unsigned_abs();
    }
    let mut count = 0;
    let mut year = from.year;
    while let Some(next) = sets.year_at_or_after(year) {
        if next > to.year || count >= enough {
            break;
        }
        year = next;
        let mut months = sets.months;
        if year == from.year {
            months &= u16::MAX << (from.month - 1);
        }
        if year == to.year {
            months &= u16::MAX >> (16 - u16::from(to.month));
        }
        while months != 0 {
            let month = months.trailing_zeros() as u8 + 1;
            months &= months - 1;
            let first = Date::new(year, month, 1).days();
            let mut days = sets.days.month(year, month, first);
            if (year, month) == (from.year, from.month) {
                days &= u32::MAX << (from.day - 1);
            }
            if (year, month) == (to.year, to.month) {
                days &= u32::MAX >> (32 - u32::from(to.day));
            }
            count += u64::from(days.count_ones());
        }
        year += 1;
    }
    count
}

/// The fewest days between two matching dates; `None` if there is only one. Without a year field
/// the dates repeat every 400 years, and the rarest are 40 years apart.
pub(super) fn fewest_days_between(sets: &Sets) -> Option<i64> {
    let last_year = match sets.years {
        None => 2000 + 400 + 40,
        Some(_) => LAST_YEAR,
    };
    let mut fewest: Option<i64> = None;
    let mut previous: Option<i64> = None;
    let mut from = Date::new(1970, 1, 1);
    while let Some(day) = next_day(sets, from, last_year) {
        if let Some(days) = previous.map(|previous| day - previous) {
            if days == 1 {
                return Some(1);
            }
            fewest = Some(fewest.map_or(days, |known| known.min(days)));
        }
        previous = Some(day);
        from = Date::from_days(day + 1);
    }
    fewest
}

/// The lowest bit at or above `from`.
fn bit_at_or_above(bits: u64, from: u32) -> Option<u32> {
    let rest = bits.checked_shr(from)?;
    (rest != 0).then(|| from + rest.trailing_zeros())
}

/// The highest bit at or below `to`, which is below 64.
fn bit_at_or_below(bits: u64, to: u32) -> Option<u32> {
    let rest = bits & (u64::MAX >> (63 - to));
    (rest != 0).then(|| 63 - rest.leading_zeros())
}

fn bits_below(bits: u64, limit: u32) -> u64 {
    u64::from((bits & ((1 << limit) - 1)).count_ones())
}

/// Hour, minute and second.
fn split(second_of_day: i64) -> (u32, u32, u32) {
    let seconds = second_of_day as u32;
    (seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn join(hour: u32, minute: u32, second: u32) -> i64 {
    i64::from(hour * 3600 + minute * 60 + second)
}

impl Sets {
    fn matches_day(&self, days: i64) -> bool {
        if self.every_day {
            return true;
        }
        let date = Date::from_days(days);
        self.months & 1 << (date.month - 1) != 0 && self.has_year(date.year) && {
            let first = days - i64::from(date.day) + 1;
            self.days.month(date.year, date.month, first) & 1 << (date.day - 1) != 0
        }
    }

    fn first_time(&self) -> i64 {
        join(
            self.hours.trailing_zeros(),
            self.minutes.trailing_zeros(),
            self.seconds.trailing_zeros(),
        )
    }

    fn last_time(&self) -> i64 {
        join(
            31 - self.hours.leading_zeros(),
            63 - self.minutes.leading_zeros(),
            63 - self.seconds.leading_zeros(),
        )
    }

    fn time_at_or_after(&self, second_of_day: i64) -> Option<i64> {
        let (hour, minute, second) = split(second_of_day);
        let hours = u64::from(self.hours);
        if hours & 1 << hour != 0 {
            if self.minutes & 1 << minute != 0
                && let Some(second) = bit_at_or_above(self.seconds, second)
            {
                return Some(join(hour, minute, second));
            }
            if let Some(minute) = bit_at_or_above(self.minutes, minute + 1) {
                return Some(join(hour, minute, self.seconds.trailing_zeros()));
            }
        }
        let hour = bit_at_or_above(hours, hour + 1)?;
        let minute = self.minutes.trailing_zeros();
        Some(join(hour, minute, self.seconds.trailing_zeros()))
    }

    fn time_at_or_before(&self, second_of_day: i64) -> Option<i64> {
        let (hour, minute, second) = split(second_of_day);
        let hours = u64::from(self.hours);
        if hours & 1 << hour != 0 {
            if self.minutes & 1 << minute != 0
                && let Some(second) = bit_at_or_below(self.seconds, second)
            {
                return Some(join(hour, minute, second));
            }
            if minute > 0
                && let Some(minute) = bit_at_or_below(self.minutes, minute - 1)
            {
                return Some(join(hour, minute, 63 - self.seconds.leading_zeros()));
            }
        }
        let hour = bit_at_or_below(hours, hour.checked_sub(1)?)?;
        let minute = 63 - self.minutes.leading_zeros();
        Some(join(hour, minute, 63 - self.seconds.leading_zeros()))
    }

    /// How many matching times of day are before a second of the day.
    fn times_before(&self, second_of_day: i64) -> u64 {
        let (hour, minute, second) = split(second_of_day);
        let per_minute = u64::from(self.seconds.count_ones());
        let per_hour = u64::from(self.minutes.count_ones()) * per_minute;
        let hours = u64::from(self.hours);
        let mut count = bits_below(hours, hour) * per_hour;
        if hours & 1 << hour != 0 {
            count += bits_below(self.minutes, minute) * per_minute;
            if self.minutes & 1 << minute != 0 {
                count += bits_below(self.seconds, second);
            }
        }
        count
    }

    pub(super) fn has_year(&self, year: i32) -> bool {
        self.year_at_or_after(year) == Some(year)
    }

    fn year_at_or_after(&self, year: i32) -> Option<i32> {
        let Some(words) = &self.years else {
            return Some(year);
        };
        let index = usize::try_from(year - 1970).unwrap_or(0);
        let mut word = index / 64;
        let mut rest = words.get(word)? & (u64::MAX << (index % 64));
        while rest == 0 {
            word += 1;
            rest = *words.get(word)?;
        }
        Some(1970 + (word * 64) as i32 + rest.trailing_zeros() as i32)
    }

    fn year_at_or_before(&self, year: i32) -> Option<i32> {
        let Some(words) = &self.years else {
            return Some(year);
        };
        let index = usize::try_from(year - 1970).ok()?;
        let (mut word, mut rest) = match words.get(index / 64) {
            Some(bits) => (index / 64, bits & (u64::MAX >> (63 - index % 64))),
            None => (words.len() - 1, words[words.len() - 1]),
        };
        while rest == 0 {
            word = word.checked_sub(1)?;
            rest = words[word];
        }
        Some(1970 + (word * 64) as i32 + 63 - rest.leading_zeros() as i32)
    }
}
