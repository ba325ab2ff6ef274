//! How close together a schedule's occurrences can come.

use std::time::Duration;

use crate::cron::CronSpec;
use crate::interval::Interval;
use crate::rrule::{Freq, Rule};
use crate::rule::{StructuredRule, Unit};
use crate::schedule::{Kind, Schedule};

const MINUTE: i64 = 60;
const HOUR: i64 = 3600;
const DAY: i64 = 86_400;
/// The shortest month. Steps of months and years are taken as that many of it.
const MONTH: i64 = 28 * DAY;

impl Schedule {
    /// The shortest time between two occurrences, whenever it may be; `None` if there is only one.
    ///
    /// It is the same whatever the time of asking, the zone and the start, so a limit on it can't
    /// pass today and fail tomorrow. It is measured on the wall clock: that clocks are set, and an
    /// hour is missing for a day, does not count, and neither do single dates added by RDATE.
    /// Exact for cron expressions and intervals. For rules it is a lower bound: filters, and the
    /// exact length of months, may keep occurrences further apart.
    pub fn shortest_gap(&self) -> Option<Duration> {
        let seconds = match self.kind() {
            Kind::Cron(cron) => of_cron(cron)?,
            Kind::Interval(interval) => of_interval(*interval),
            Kind::Rule(rule) => of_rule(rule),
            Kind::RRule(rules) => of_rrule(rules.rule()),
            Kind::At(_) => return None,
        };
        Some(Duration::from_secs(seconds.max(1).unsigned_abs()))
    }
}

/// A place of a mixed-radix clock: the values it takes, sorted, and how many seconds one is worth.
struct Place {
    values: Vec<i64>,
    worth: i64,
}

impl Place {
    /// The span from the smallest to the largest value, in seconds.
    fn span(&self) -> i64 {
        match (self.values.first(), self.values.last()) {
            (Some(first), Some(last)) => (last - first) * self.worth,
            _ => 0,
        }
    }

    /// The shortest distance between two values, in seconds.
    fn step(&self) -> Option<i64> {
        self.values
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) * self.worth)
            .min()
    }
}

/// The shortest gap among all combinations of the places, finest first, that repeat at `period`.
fn shortest(places: &[Place], period: Option<i64>) -> Option<i64> {
    let mut shortest = None;
    let mut finer = 0;
    let mut consider = |step: i64| {
        let gap: i64 = shortest.map_or(step, |known: i64| known.min(step));
        shortest = Some(gap);
    };
    for place in places {
        if let Some(step) = place.step() {
            consider(step - finer);
        }
        finer += place.span();
    }
    if let Some(period) = period {
        consider(period - finer);
    }
    shortest
}

fn of_cron(cron: &CronSpec) -> Option<i64> {
    let [seconds, minutes, hours] = cron.times_of_day().map(|bits| {
        (0..64)
            .filter(|value| bits & 1 << value != 0)
            .map(i64::from)
            .collect()
    });
    shortest(
        &[
            Place {
                values: seconds,
                worth: 1,
            },
            Place {
                values: minutes,
                worth: MINUTE,
            },
            Place {
                values: hours,
                worth: HOUR,
            },
        ],
        cron.fewest_days_between().map(|days| days * DAY),
    )
}

fn of_interval(interval: Interval) -> i64 {
    match interval {
        Interval::Months(months) => i64::from(months) * MONTH,
        Interval::Days { days, seconds } => i64::from(days) * DAY + i64::from(seconds),
        Interval::Seconds(seconds) => i64::from(seconds),
    }
}

fn of_rule(rule: &StructuredRule) -> i64 {
    let every = i64::from(rule.every());
    match (rule.unit(), rule.days_of_week()) {
        (Unit::Minute, _) => every * MINUTE,
        (Unit::Hour, _) => every * HOUR,
        (Unit::Day, _) => every * DAY,
        (Unit::Week, None) => every * 7 * DAY,
        (Unit::Week, Some(days)) => {
            let days = Place {
                values: days.iter().map(i64::from).collect(),
                worth: DAY,
            };
            let period = every * 7 * DAY;
            shortest(&[days], Some(period)).unwrap_or(period)
        }
        (Unit::Month, _) => every * MONTH,
    }
}

fn of_rrule(rule: &Rule) -> i64 {
    let every = i64::from(rule.interval);
    let names_days = !(rule.months.is_empty()
        && rule.week_numbers.is_empty()
        && rule.year_days.is_empty()
        && rule.month_days.is_empty()
        && rule.weekdays.is_empty());
    let period = match rule.freq {
        Freq::Secondly => every,
        Freq::Minutely => every * MINUTE,
        Freq::Hourly => every * HOUR,
        Freq::Daily => every * DAY,
        Freq::Weekly | Freq::Monthly | Freq::Yearly if names_days => DAY,
        Freq::Weekly => every * 7 * DAY,
        Freq::Monthly => every * MONTH,
        Freq::Yearly => every * 365 * DAY,
    };
    // A part that is as fine as FREQ or coarser only leaves occurrences out.
    let places = [
        (&rule.seconds, 1, MINUTE),
        (&rule.minutes, MINUTE, HOUR),
        (&rule.hours, HOUR, DAY),
    ]
    .into_iter()
    .filter(|(_, _, coarser)| period >= *coarser && rule.freq != Freq::Secondly)
    .map(|(values, worth, _)| Place {
        values: values.iter().copied().map(i64::from).collect(),
        worth,
    })
    .collect::<Vec<Place>>();
    shortest(&places, Some(period)).unwrap_or(period)
}
