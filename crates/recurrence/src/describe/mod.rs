//! Schedules in plain English.
//!
//! Every sentence begins in lower case and has everything that the schedule has. What the start
//! determines, such as the time of day of "every 2 days", is not in the schedule and so not in the
//! sentence.

mod cron;
mod rrule;
mod rule;
mod words;

use crate::Zone;
use crate::at::{At, Moment};
use crate::civil::Civil;
use crate::interval::Interval;
use crate::schedule::{Kind, Schedule};
use words::{count_of, date, every, list, time_of_day};

impl Schedule {
    /// The schedule in plain English.
    ///
    /// # Examples
    /// ```
    /// use recurrence::Schedule;
    ///
    /// let schedule = Schedule::parse("0 9 * * MON-FRI")?;
    /// assert_eq!(schedule.describe(), "at 09:00, Monday through Friday");
    /// # Ok::<(), recurrence::ScheduleError>(())
    /// ```
    pub fn describe(&self) -> String {
        match self.kind() {
            Kind::Cron(cron) => cron::describe(cron),
            Kind::Interval(interval) => describe_interval(*interval),
            Kind::Rule(rule) => rule::describe(rule),
            Kind::RRule(rules) => rrule::describe(rules),
            Kind::At(at) => describe_at(at),
        }
    }

    /// The schedule in plain English, followed by the zone. An instant is the same in all zones, and
    /// so has none.
    ///
    /// # Examples
    /// ```
    /// use recurrence::{Schedule, Zone};
    ///
    /// let tokyo = Zone::parse("Asia/Tokyo")?;
    /// let schedule = Schedule::parse("RRULE:FREQ=MONTHLY;BYDAY=-1FR")?;
    /// assert_eq!(schedule.describe_in(tokyo), "every month on the last Friday, Asia/Tokyo");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn describe_in(&self, zone: Zone) -> String {
        match self.kind() {
            Kind::At(at) if matches!(at.moment(), Moment::Instant(_)) => self.describe(),
            _ => format!("{}, {}", self.describe(), zone.name()),
        }
    }
}

fn describe_interval(interval: Interval) -> String {
    match interval {
        Interval::Months(months) if months.is_multiple_of(12) => every(months / 12, "year"),
        Interval::Months(months) => every(months, "month"),
        Interval::Days { days, seconds: 0 } if days.is_multiple_of(7) => every(days / 7, "week"),
        Interval::Days { days, seconds: 0 } => every(days, "day"),
        Interval::Days { days, seconds } => {
            let mut parts = vec![count_of(days, "day")];
            for (count, unit) in [
                (seconds / 3_600, "hour"),
                (seconds / 60 % 60, "minute"),
                (seconds % 60, "second"),
            ] {
                if count > 0 {
                    parts.push(count_of(count, unit));
                }
            }
            format!("every {}", list(&parts))
        }
        Interval::Seconds(seconds) if seconds.is_multiple_of(3_600) => {
            every(seconds / 3_600, "hour")
        }
        Interval::Seconds(seconds) if seconds.is_multiple_of(60) => every(seconds / 60, "minute"),
        Interval::Seconds(seconds) => every(seconds, "second"),
    }
}

fn describe_at(at: &At) -> String {
    let (civil, suffix) = match at.moment() {
        Moment::Local(civil) => (civil, ""),
        Moment::Instant(instant) => (Civil(instant), " UTC"),
    };
    let mut time = time_of_day(civil.second_of_day());
    if at.subsec_nanos() > 0 {
        if civil.second_of_day() % 60 == 0 {
            time += ":00";
        }
        let fraction = format!("{:09}", at.subsec_nanos());
        time = format!("{time}.{}", fraction.trim_end_matches('0'));
    }
    format!("once, on {} at {time}{suffix}", date(civil))
}
