//! Civil time: what a clock on the wall shows, with no zone attached.
//!
//! Every search in this crate runs on [`Civil`] values and on (year, month, day) integers. A zone
//! resolves the one civil answer to an instant at the end. Whole seconds are enough: an anchor's
//! fraction of a second is split off before a search and added back after it.
//!
//! ```
//! use recurrence::civil::{Civil, Date, iso_week, iso_weekday};
//!
//! let noon = Civil::new(Date::new(2027, 1, 31).days(), 12 * 3600);
//! assert_eq!(noon.date(), Date::new(2027, 1, 31));
//! assert_eq!(iso_weekday(noon.days()), 7);
//! assert_eq!(iso_week(noon.days()), (2027, 4));
//! ```

/// Seconds of a civil day.
pub const DAY: i64 = 86_400;

/// A wall-clock reading: seconds since 1970-01-01T00:00:00 on the proleptic Gregorian calendar,
/// in no particular zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Civil(pub i64);

/// A calendar date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// On the proleptic Gregorian calendar; 0 is 1 BC.
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

impl Civil {
    /// The reading at `second_of_day` on the day that is `days` days after 1970-01-01.
    pub const fn new(days: i64, second_of_day: i64) -> Self {
        Civil(days * DAY + second_of_day)
    }

    /// Days since 1970-01-01.
    pub const fn days(self) -> i64 {
        self.0.div_euclid(DAY)
    }

    /// Seconds since midnight, 0 to 86,399.
    pub const fn second_of_day(self) -> i64 {
        self.0.rem_euclid(DAY)
    }

    /// The reading's date.
    pub const fn date(self) -> Date {
        Date::from_days(self.days())
    }
}

impl Date {
    /// A date, which is not checked to exist.
    pub const fn new(year: i32, month: u8, day: u8) -> Self {
        Date { year, month, day }
    }

    /// Days since 1970-01-01. Howard Hinnant's `days_from_civil`.
    pub const fn days(self) -> i64 {
        let y = self.year as i64 - (self.month <= 2) as i64;
        let era = y.div_euclid(400);
        let year_of_era = y.rem_euclid(400);
        let month = self.month as i64;
        let shifted = if month > 2 { month - 3 } else { month + 9 };
        let day_of_year = (153 * shifted + 2) / 5 + self.day as i64 - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * 146_097 + day_of_era - 719_468
    }

    /// The inverse of [`Date::days`].
    pub const fn from_days(days: i64) -> Self {
        let z = days + 719_468;
        let era = z.div_euclid(146_097);
        let day_of_era = z.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * day_of_year + 2) / 153;
        let day = (day_of_year - (153 * shifted + 2) / 5 + 1) as u8;
        let month = if shifted < 10 {
            shifted + 3
        } else {
            shifted - 9
        } as u8;
        let year = (year_of_era + era * 400 + (month <= 2) as i64) as i32;
        Date { year, month, day }
    }
}

/// Whether a year has a 29 February.
pub const fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// The length of a month, 28 to 31.
pub const fn days_in_month(year: i32, month: u8) -> u8 {
    match month {
        2 => 28 + is_leap(year) as u8,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// ISO weekday of a day number: 1 = Monday to 7 = Sunday.
pub const fn iso_weekday(days: i64) -> u8 {
    // 1970-01-01 was a Thursday.
    ((days + 3).rem_euclid(7) + 1) as u8
}

/// (ISO year, ISO week 1 to 53) of a day number.
pub const fn iso_week(days: i64) -> (i32, u8) {
    // A week belongs to the year that holds its Thursday.
    let thursday = days - (iso_weekday(days) as i64) + 4;
    let year = Date::from_days(thursday).year;
    let first = Date::new(year, 1, 1).days();
    (year, ((thursday - first) / 7 + 1) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{Datelike, NaiveDate};

    #[test]
    fn agrees_with_chrono_on_every_day_of_five_centuries() {
        let epoch = NaiveDate::from_ymd_opt(1970, 1, 1).unwrap();
        let first = NaiveDate::from_ymd_opt(1800, 1, 1).unwrap();
        for date in first.iter_days().take(500 * 366) {
            let days = (date - epoch).num_days();
            let ours = Date::from_days(days);
            assert_eq!(
                (ours.year, ours.month, ours.day),
                (date.year(), date.month() as u8, date.day() as u8)
            );
            assert_eq!(ours.days(), days);
            assert_eq!(iso_weekday(days), date.weekday().number_from_monday() as u8);
            let week = date.iso_week();
            assert_eq!(iso_week(days), (week.year(), week.week() as u8));
        }
    }

    #[test]
    fn civil_splits_and_joins_before_and_after_the_epoch() {
        for seconds in [-DAY - 1, -DAY, -1, 0, 1, DAY - 1, DAY, 1_900_000_000] {
            let civil = Civil(seconds);
            assert!((0..DAY).contains(&civil.second_of_day()));
            assert_eq!(Civil::new(civil.days(), civil.second_of_day()), civil);
        }
    }
}
