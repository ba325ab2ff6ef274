//! The periods that a rule visits: every INTERVAL-th year, month, week, day, hour, minute or second,
//! counted from the anchor's. Every answer is arithmetic, without a walk through the periods.

use super::rule::{Freq, Rule};
use super::times::Times;
use crate::civil::{Civil, DAY, Date, iso_weekday};

/// Days after which the calendar repeats, weekdays included.
const CYCLE_DAYS: i64 = 146_097;

#[derive(Clone, Copy, Debug)]
pub(super) struct Cadence {
    freq: Freq,
    interval: i64,
    /// The day number of the start of some week.
    week_origin: i64,
    /// The index of the anchor's period.
    origin: i64,
}

impl Cadence {
    pub fn new(rule: &Rule, anchor: Civil) -> Self {
        let into_week = (i64::from(iso_weekday(0)) - i64::from(rule.week_start)).rem_euclid(7);
        let mut cadence = Cadence {
            freq: rule.freq,
            interval: rule.interval.into(),
            week_origin: -into_week,
            origin: 0,
        };
        cadence.origin = cadence.period_of(anchor);
        cadence
    }

    pub fn freq(self) -> Freq {
        self.freq
    }

    pub fn interval(self) -> i64 {
        self.interval
    }

    /// The index of a time's period.
    pub fn period_of(self, at: Civil) -> i64 {
        match self.freq {
            Freq::Yearly => at.date().year.into(),
            Freq::Monthly => month_index(at.days()),
            Freq::Weekly => (at.days() - self.week_origin).div_euclid(7),
            Freq::Daily => at.days(),
            Freq::Hourly => at.0.div_euclid(3_600),
            Freq::Minutely => at.0.div_euclid(60),
            Freq::Secondly => at.0,
        }
    }

    /// The first second of a period; the largest value for periods beyond the calendar.
    pub fn start_of(self, period: i64) -> Civil {
        let unit = match self.freq {
            Freq::Yearly | Freq::Monthly => {
                let month = if self.freq == Freq::Yearly {
                    period.saturating_mul(12)
                } else {
                    period
                };
                return month_start(month).map_or(Civil(i64::MAX), |days| Civil::new(days, 0));
            }
            Freq::Weekly => 7 * DAY,
            Freq::Daily => DAY,
            Freq::Hourly => 3_600,
            Freq::Minutely => 60,
            Freq::Secondly => 1,
        };
        let origin = if self.freq == Freq::Weekly {
            self.week_origin * DAY
        } else {
            0
        };
        Civil(period.saturating_mul(unit).saturating_add(origin))
    }

    /// `at` itself when its period is visited, else the start of the next visited period.
    pub fn at_or_after(self, at: Civil) -> Civil {
        let period = self.period_of(at);
        match (period - self.origin).rem_euclid(self.interval) {
            0 => at,
            past => self.start_of(period + self.interval - past),
        }
    }

    /// `at` itself when its period is visited, else the last second of the visited period before.
    pub fn at_or_before(self, at: Civil) -> Civil {
        let period = self.period_of(at);
        match (period - self.origin).rem_euclid(self.interval) {
            0 => at,
            past => Civil(self.start_of(period - past + 1).0 - 1),
        }
    }

    /// The number of visited periods until the calendar and the cadence repeat together.
    pub fn periods_in_cycle(self) -> u32 {
        let periods: i64 = match self.freq {
            Freq::Yearly => 400,
            Freq::Monthly => 4_800,
            Freq::Weekly => CYCLE_DAYS / 7,
            Freq::Daily => CYCLE_DAYS,
            Freq::Hourly => CYCLE_DAYS * 24,
            Freq::Minutely => CYCLE_DAYS * 1_440,
            Freq::Secondly => CYCLE_DAYS * DAY,
        };
        u32::try_from(periods / gcd(periods, self.interval)).unwrap_or(u32::MAX)
    }

    /// Whether the cadence ever meets one of these times of day. Every second hour from 09:00 never
    /// meets BYHOUR=10: modulo the greatest common divisor of its step and the day, all times of a
    /// cadence are equal.
    pub fn meets(self, times: Times) -> bool {
        let (unit, mut times) = match self.freq {
            Freq::Hourly => (
                3_600,
                Times {
                    minutes: 1,
                    seconds: 1,
                    ..times
                },
            ),
            Freq::Minutely => (
                60,
                Times {
                    seconds: 1,
                    ..times
                },
            ),
            Freq::Secondly => (1, times),
            _ => return true,
        };
        let modulus = gcd(self.interval * unit, DAY);
        let wanted = (self.origin * unit).rem_euclid(modulus);
        times.seconds = remainders(times.seconds, modulus);
        (0..1_440).any(|minute| {
            let allowed =
                times.hours >> (minute / 60) & 1 == 1 && times.minutes >> (minute % 60) & 1 == 1;
            let second = (wanted - minute * 60).rem_euclid(modulus);
            allowed && second < 60 && times.seconds >> second & 1 == 1
        })
    }

    /// The times of day within the period of `at`: all of them, unless it is shorter than a day.
    pub fn times_in_period(self, times: Times, at: Civil) -> Times {
        let time = at.second_of_day();
        let mut within = times;
        if self.freq >= Freq::Hourly {
            within.hours &= 1 << (time / 3_600);
        }
        if self.freq >= Freq::Minutely {
            within.minutes &= 1 << (time / 60 % 60);
        }
        if self.freq >= Freq::Secondly {
            within.seconds &= 1 << (time % 60);
        }
        within
    }
}

/// The remainders of the set's numbers, which are below 60.
fn remainders(set: u64, modulus: i64) -> u64 {
    (0..60)
        .filter(|number| set >> number & 1 == 1)
        .fold(0, |remainders, number| remainders | 1 << (number % modulus))
}

fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Months since January of the year 0.
pub(super) fn month_index(days: i64) -> i64 {
    let date = Date::from_days(days);
    i64::from(date.year) * 12 + i64::from(date.month) - 1
}

/// (year, month) of a month index; `None` where the year is beyond the calendar.
pub(super) fn year_and_month(index: i64) -> Option<(i32, u8)> {
    let year = i32::try_from(index.div_euclid(12)).ok()?;
    Some((year, index.rem_euclid(12) as u8 + 1))
}

fn month_start(index: i64) -> Option<i64> {
    year_and_month(index).map(|(year, month)| Date::new(year, month, 1).days())
}
