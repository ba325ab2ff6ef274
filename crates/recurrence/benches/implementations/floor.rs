//! A floor for the cost of a search: bit sets for every field, no bounds and no notes. It is wrong
//! around clock changes, because it only applies the offsets before and after the search.

use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::Tz;
use croner::Cron;
use recurrence::civil::{Civil, Date, days_in_month, iso_weekday};

const ALL: u8 = 1;
const NTH: [u8; 5] = [1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5];
const LAST: u8 = 1 << 6;

pub struct BareSearch {
    seconds: u64,
    minutes: u64,
    hours: u64,
    days: u32,
    last_day: bool,
    months: u32,
    weekdays: u32,
    nth: [u32; 5],
    any_day: bool,
    any_weekday: bool,
    both: bool,
    /// Start and offset of each span.
    spans: Vec<(i64, i64)>,
}

fn bits(values: Vec<u16>) -> u64 {
    values.into_iter().fold(0, |bits, value| bits | 1 << value)
}

impl BareSearch {
    pub fn new(cron: &Cron, tz: Tz) -> BareSearch {
        let pattern = &cron.pattern;
        let offset = |at: i64| {
            let utc = DateTime::from_timestamp(at, 0)
                .expect("an instant")
                .naive_utc();
            i64::from(tz.offset_from_utc_datetime(&utc).fix().local_minus_utc())
        };
        let mut spans = vec![(i64::MIN, offset(0))];
        for hour in (0..4_000_000_000).step_by(3600) {
            let now = offset(hour);
            if spans.last().is_some_and(|(_, known)| *known != now) {
                spans.push((hour, now));
            }
        }
        BareSearch {
            seconds: bits(pattern.seconds.get_set_values(ALL)),
            minutes: bits(pattern.minutes.get_set_values(ALL)),
            hours: bits(pattern.hours.get_set_values(ALL)),
            days: (bits(pattern.days.get_set_values(ALL)) >> 1) as u32,
            last_day: pattern.days.is_feature_enabled(LAST),
            months: bits(pattern.months.get_set_values(ALL)) as u32,
            weekdays: bits(pattern.days_of_week.get_set_values(ALL)) as u32,
            nth: NTH.map(|nth| bits(pattern.days_of_week.get_set_values(nth)) as u32),
            any_day: pattern.is_dom_wildcard(),
            any_weekday: pattern.is_dow_wildcard(),
            both: pattern.matches_dom_and_dow(),
            spans,
        }
    }

    fn offset(&self, at: i64) -> i64 {
        let after = self.spans.partition_point(|(start, _)| *start <= at);
        self.spans[after - 1].1
    }

    pub fn next_after(&self, at: i64) -> Option<i64> {
        let civil = Civil(at + self.offset(at) + 1);
        let date = civil.date();
        let first = civil.days() - i64::from(date.day) + 1;
        let today = self.month(date.year, date.month, first) >> (date.day - 1);
        let local = match self.time(civil.second_of_day()) {
            Some(second) if today & 1 != 0 => Civil::new(civil.days(), second),
            _ => Civil::new(self.day_after(date, first, today)?, self.time(0)?),
        };
        Some(local.0 - self.offset(local.0 - self.offset(local.0)))
    }

    /// The first matching day after a date; `today` has the matches of its month from that date on.
    fn day_after(&self, date: Date, first: i64, today: u32) -> Option<i64> {
        if today > 1 {
            let ahead = (today & !1).trailing_zeros();
            return Some(first + i64::from(date.day) - 1 + i64::from(ahead));
        }
        let (mut year, mut month) = (date.year, date.month + 1);
        while year < 2200 {
            let later = self.months >> month << month;
            if later == 0 {
                (year, month) = (year + 1, 1);
                continue;
            }
            month = later.trailing_zeros() as u8;
            let first = Date::new(year, month, 1).days();
            let days = self.month(year, month, first);
            if days != 0 {
                return Some(first + i64::from(days.trailing_zeros()));
            }
            month += 1;
        }
        None
    }

    /// The matching days of a month, as bits.
    fn month(&self, year: i32, month: u8, first: i64) -> u32 {
        if self.months & 1 << month == 0 {
            return 0;
        }
        let length = u32::from(days_in_month(year, month));
        let all = u32::MAX >> (32 - length);
        let by_day = self.days | u32::from(self.last_day) << (length - 1);
        let rotation = u32::from(iso_weekday(first) % 7);
        let from_first = |week: u32| u64::from((week >> rotation | week << (7 - rotation)) & 0x7f);
        let mut by_weekday = from_first(self.weekdays) * 0x1020_4081;
        for (index, week) in self.nth.iter().enumerate() {
            by_weekday |= from_first(*week) << (7 * index);
        }
        let by_weekday = by_weekday as u32;
        all & match (self.any_day, self.any_weekday) {
            (true, true) => all,
            (true, false) => by_weekday,
            (false, true) => by_day,
            (false, false) if self.both => by_day & by_weekday,
            (false, false) => by_day | by_weekday,
        }
    }

    fn time(&self, second_of_day: i64) -> Option<i64> {
        let (hour, rest) = (second_of_day / 3600, second_of_day % 3600);
        let (minute, second) = (rest / 60, rest % 60);
        let above = |bits: u64, from: i64| {
            let rest = bits >> from << from;
            (rest != 0).then(|| i64::from(rest.trailing_zeros()))
        };
        let first = |bits: u64| i64::from(bits.trailing_zeros());
        if self.hours & 1 << hour != 0 {
            if self.minutes & 1 << minute != 0
                && let Some(second) = above(self.seconds, second)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = above(self.minutes, minute + 1) {
                return Some(hour * 3600 + minute * 60 + first(self.seconds));
            }
        }
        let hour = above(self.hours, hour + 1)?;
        Some(hour * 3600 + first(self.minutes) * 60 + first(self.seconds))
    }
}
