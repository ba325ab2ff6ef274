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
/// The shortest month; steps of months and years count as multiples of it.
const MONTH: i64 = 28 * DAY;

impl Schedule {
    /// The shortest time between any two occurrences; `None` if there is only one.
    ///
    /// The answer depends on neither the clock, nor the zone, nor the start, so a limit on it can't
    /// pass today and fail tomorrow. It is measured on the wall clock: the hour that a clock change
    /// removes does not count, and neither do single dates that RDATE adds. It is exact for cron
    /// expressions and intervals. For rules it is a lower bound, because filters and the lengths of
    /// months may keep occurrences further apart.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use recurrence::Schedule;
    ///
    /// let gap = Schedule::parse("*/7 * * * *")?.shortest_gap();
    /// // From minute 56 to minute 0 of the next hour.
    /// assert_eq!(gap, Some(Duration::from_secs(4 * 60)));
    /// assert_eq!(Schedule::parse("at 2027-01-31T09:00:00")?.shortest_gap(), None);
    /// # Ok::<(), recurrence::ScheduleError>(())
    /// ```
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

/// The values that a unit of time takes, such as the minutes of an hour.
struct UnitValues {
    /// Sorted.
    values: Vec<i64>,
    /// The length of the unit, in seconds.
    unit: i64,
}

impl UnitValues {
    /// The span from the smallest to the largest value, in seconds.
    fn span(&self) -> i64 {
        match (self.values.first(), self.values.last()) {
            (Some(first), Some(last)) => (last - first) * self.unit,
            _ => 0,
        }
    }

    /// The shortest distance between two values, in seconds.
    fn step(&self) -> Option<i64> {
        self.values
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) * self.unit)
            .min()
    }
}

/// The shortest gap among all combinations of the units' values, finest unit first, which repeat after
/// `period`.
fn shortest(units: &[UnitValues], period: Option<i64>) -> Option<i64> {
    let mut shortest = None;
    let mut finer = 0;
    let mut consider = |step: i64| {
        let gap: i64 = shortest.map_or(step, |known: i64| known.min(step));
        shortest = Some(gap);
    };
    for unit in units {
        if let Some(step) = unit.step() {
            consider(step - finer);
        }
        finer += unit.span();
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
            UnitValues {
                values: seconds,
                unit: 1,
            },
            UnitValues {
                values: minutes,
                unit: MINUTE,
            },
            UnitValues {
                values: hours,
                unit: HOUR,
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
            let days = UnitValues {
                values: days.iter().map(i64::from).collect(),
                unit: DAY,
            };
            let period = every * 7 * DAY;
            shortest(&[days], Some(period)).unwrap_or(period)
        }
        (Unit::Month, _) => every * MONTH,
        (Unit::Year, _) => every * 12 * MONTH,
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
    // A part that is as coarse as FREQ, or coarser, only removes occurrences.
    let units = [
        (&rule.seconds, 1, MINUTE),
        (&rule.minutes, MINUTE, HOUR),
        (&rule.hours, HOUR, DAY),
    ]
    .into_iter()
    .filter(|(_, _, coarser)| period >= *coarser && rule.freq != Freq::Secondly)
    .map(|(values, unit, _)| UnitValues {
        values: values.iter().copied().map(i64::from).collect(),
        unit,
    })
    .collect::<Vec<UnitValues>>();
    shortest(&units, Some(period)).unwrap_or(period)
}
