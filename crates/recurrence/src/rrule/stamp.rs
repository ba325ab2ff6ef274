//! Times written inside a rule: `20270131T090000`, `20270131T090000Z`, and `20270131` for UNTIL.

use std::fmt::{self, Display, Formatter};

use crate::civil::{Civil, Date, days_in_month};

/// A time in the text of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stamp {
    /// A wall-clock reading in the zone of the action.
    Local(Civil),
    /// An instant, in Unix seconds.
    Utc(i64),
}

impl Stamp {
    /// Reads `YYYYMMDDTHHMMSS`, with a `Z` at the end when it is UTC.
    pub(super) fn parse(text: &str) -> Option<Stamp> {
        let (local, utc) = match text.strip_suffix(['Z', 'z']) {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let (date, time) = local.split_once(['T', 't'])?;
        let civil = Civil::new(parse_date(date)?, parse_time(time)?);
        Some(if utc {
            Stamp::Utc(civil.0)
        } else {
            Stamp::Local(civil)
        })
    }

    /// Reads a bare date as its last second: `UNTIL=20270131` includes the whole of that day.
    pub(super) fn parse_last_of_day(text: &str) -> Option<Stamp> {
        parse_date(text).map(|days| Stamp::Local(Civil::new(days, 86_399)))
    }

    /// What a wall clock shows at this time, where `local` reads the clock of the action's zone.
    pub(super) fn civil(self, local: impl Fn(i64) -> Civil) -> Civil {
        match self {
            Stamp::Local(civil) => civil,
            Stamp::Utc(instant) => local(instant),
        }
    }
}

fn parse_date(text: &str) -> Option<i64> {
    let digits = exactly(text, 8)?;
    let year = (digits / 10_000) as i32;
    let month = (digits / 100 % 100) as u8;
    let day = (digits % 100) as u8;
    // The calendar has no year 0, and `0000` is a typing error.
    let valid =
        year >= 1 && (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    valid.then(|| Date::new(year, month, day).days())
}

fn parse_time(text: &str) -> Option<i64> {
    let digits = i64::from(exactly(text, 6)?);
    let (hour, minute, second) = (digits / 10_000, digits / 100 % 100, digits % 100);
    // 60 is a leap second; RFC 5545 3.3.12 reads it as 59 on clocks without leap seconds.
    (hour < 24 && minute < 60 && second <= 60).then(|| hour * 3_600 + minute * 60 + second.min(59))
}

fn exactly(text: &str, digits: usize) -> Option<u32> {
    (text.len() == digits && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

impl Display for Stamp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (civil, suffix) = match *self {
            Stamp::Local(civil) => (civil, ""),
            Stamp::Utc(instant) => (Civil(instant), "Z"),
        };
        let date = civil.date();
        let seconds = civil.second_of_day();
        write!(
            f,
            "{:04}{:02}{:02}T{:02}{:02}{:02}{suffix}",
            date.year,
            date.month,
            date.day,
            seconds / 3_600,
            seconds / 60 % 60,
            seconds % 60,
        )
    }
}
