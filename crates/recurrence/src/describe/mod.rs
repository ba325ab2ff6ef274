//! Schedules in plain English.
//!
//! Every sentence begins in lower case and has everything that the schedule has. What the start
//! determines, such as the time of day of "every 2 days", is not in the schedule and so not in the
//! sentence.

mod cron;
mod rrule;
mod rule;
mod words;

use std::str::FromStr;

use chrono::{DateTime, Utc};

use crate::at::{At, Moment};
use crate::civil::Civil;
use crate::interval::Interval;
use crate::policy::PolicyError;
use crate::recurrence::Bounds;
use crate::rrule::Freq;
use crate::rule::Unit;
use crate::schedule::{Kind, Schedule};
use crate::zone::Zone;
use words::{capitalized, count_of, date, date_and_time, every, list, short_date, time_of_day};

/// How a description writes times of day.
///
/// # Examples
/// ```
/// use recurrence::{Bounds, Schedule, Style, Zone};
///
/// let schedule = Schedule::parse("0 9 * * MON-FRI")?;
/// let zone = Zone::parse("America/New_York")?;
/// assert_eq!(
///     schedule.describe_as("12h".parse()?, Some(zone), &Bounds::default()),
///     "Every weekday at 9:00 AM, New York time"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Style {
    /// `at 09:00`, in lower case, with the zone's IANA name.
    #[default]
    Hours24,
    /// `At 9:00 AM`, as a sentence begins, with the zone's city.
    Hours12,
}

impl FromStr for Style {
    type Err = PolicyError;

    fn from_str(name: &str) -> Result<Style, PolicyError> {
        match name {
            "24h" => Ok(Style::Hours24),
            "12h" => Ok(Style::Hours12),
            _ => Err(PolicyError::new("style", name, "24h or 12h")),
        }
    }
}

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
        self.sentence(Style::Hours24)
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
        self.describe_as(Style::Hours24, Some(zone), &Bounds::default())
    }

    /// The schedule in plain English, in a style, with its zone if there is one, and with its bounds. A start
    /// gives the time of day to schedules that count from it.
    ///
    /// # Examples
    /// ```
    /// use recurrence::{Bounds, Schedule, Style, Zone};
    ///
    /// let schedule = Schedule::parse("2d")?;
    /// let bounds = Bounds {
    ///     starts_at: Some("2026-02-10T15:30:00Z".parse()?),
    ///     max_runs: Some(12),
    ///     ..Bounds::default()
    /// };
    /// assert_eq!(
    ///     schedule.describe_as(Style::Hours24, Some(Zone::UTC), &bounds),
    ///     "every 2 days at 15:30, UTC, starting Feb 10, 2026, 12 times"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn describe_as(&self, style: Style, zone: Option<Zone>, bounds: &Bounds) -> String {
        let table = zone.unwrap_or(Zone::UTC).table();
        let local = |instant: DateTime<Utc>| table.civil_at(instant.timestamp());
        let mut text = self.sentence(style);
        if let Some(start) = bounds.starts_at.filter(|_| self.takes_time_from_start()) {
            let comma = if text.contains(',') { "," } else { "" };
            let time = time_of_day(style, local(start).second_of_day());
            text += &format!("{comma} at {time}");
        }
        let is_instant =
            matches!(self.kind(), Kind::At(at) if matches!(at.moment(), Moment::Instant(_)));
        if let Some(zone) = zone.filter(|_| !is_instant) {
            text += &format!(", {}", zone_in_words(style, zone));
        }
        // A single time has no bounds that matter.
        if !matches!(self.kind(), Kind::At(_)) {
            if let Some(start) = bounds.starts_at {
                text += &format!(", starting {}", short_date(local(start)));
            }
            if let Some(end) = bounds.ends_at {
                text += &format!(", until {}", short_date(local(end)));
            }
            match bounds.max_runs {
                None => {}
                Some(1) => text += ", once",
                Some(runs) => text += &format!(", {}", count_of(runs, "time")),
            }
        }
        match style {
            Style::Hours24 => text,
            Style::Hours12 => capitalized(&text),
        }
    }

    fn sentence(&self, style: Style) -> String {
        match self.kind() {
            Kind::Cron(cron) => cron::describe(cron, style),
            Kind::Interval(interval) => describe_interval(*interval),
            Kind::Rule(rule) => rule::describe(rule, style),
            Kind::RRule(rules) => rrule::describe(rules, style),
            Kind::At(at) => describe_at(at, style),
        }
    }

    /// Whether the start alone determines the time of day.
    fn takes_time_from_start(&self) -> bool {
        match self.kind() {
            Kind::Interval(Interval::Months(_) | Interval::Days { seconds: 0, .. }) => true,
            Kind::Rule(rule) => rule.unit() >= Unit::Day,
            Kind::RRule(rules) => {
                let rule = rules.rule();
                rule.freq <= Freq::Daily
                    && rule.hours.is_empty()
                    && rule.minutes.is_empty()
                    && rule.seconds.is_empty()
            }
            Kind::Interval(_) | Kind::Cron(_) | Kind::At(_) => false,
        }
    }
}

/// `America/New_York`, or in the style of twelve hours `New York time`. A zone without a city keeps its name.
fn zone_in_words(style: Style, zone: Zone) -> String {
    let name = zone.name();
    match (style, name.rsplit_once('/')) {
        (Style::Hours12, Some((region, city))) if region != "Etc" => {
            format!("{} time", city.replace('_', " "))
        }
        _ => name.to_owned(),
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

fn describe_at(at: &At, style: Style) -> String {
    let (civil, suffix) = match at.moment() {
        Moment::Local(civil) => (civil, ""),
        Moment::Instant(instant) => (Civil(instant), " UTC"),
    };
    if at.subsec_nanos() == 0 {
        return format!("once, on {}{suffix}", date_and_time(style, civil));
    }
    // A fraction is only written in the style of 24 hours.
    let mut time = time_of_day(Style::Hours24, civil.second_of_day());
    if civil.second_of_day() % 60 == 0 {
        time += ":00";
    }
    let fraction = format!("{:09}", at.subsec_nanos());
    time = format!("{time}.{}", fraction.trim_end_matches('0'));
    format!("once, on {} at {time}{suffix}", date(civil))
}
