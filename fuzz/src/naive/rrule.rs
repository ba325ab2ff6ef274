//! RFC 5545 rules without the rare parts, walked day by day in UTC.

use chrono::{DateTime, Datelike, Duration, NaiveDate, NaiveDateTime, Timelike, Utc};
use std::collections::HashMap;

/// A rule as it is written.
#[derive(Clone, Debug)]
pub struct Rule {
    freq: String,
    interval: i64,
    count: Option<usize>,
    week_start: i64,
    months: Vec<i64>,
    month_days: Vec<i64>,
    /// ISO weekday, and which one of the month; 0 is each.
    days: Vec<(i64, i64)>,
    times: [Vec<u32>; 3],
}

const DAYS: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];

fn day(text: &str) -> Option<(i64, i64)> {
    let (number, name) = text.split_at_checked(text.len().checked_sub(2)?)?;
    let weekday = DAYS.iter().position(|day| *day == name)? as i64 + 1;
    match number {
        "" => Some((weekday, 0)),
        number => Some((weekday, number.parse().ok()?)),
    }
}

impl Rule {
    /// Reads a valid rule in canonical form; None where it has parts that the model lacks.
    pub fn read(text: &str) -> Option<Rule> {
        const KNOWN: [&str; 10] = [
            "FREQ",
            "INTERVAL",
            "COUNT",
            "WKST",
            "BYMONTH",
            "BYMONTHDAY",
            "BYDAY",
            "BYHOUR",
            "BYMINUTE",
            "BYSECOND",
        ];
        let parts = text
            .strip_prefix("RRULE:")
            .filter(|parts| !parts.contains('\n'))?;
        let parts: Option<HashMap<&str, &str>> =
            parts.split(';').map(|part| part.split_once('=')).collect();
        let parts = parts.filter(|parts| parts.keys().all(|name| KNOWN.contains(name)))?;
        let numbers = |name: &str| -> Vec<i64> {
            let list = parts.get(name).into_iter().flat_map(|list| list.split(','));
            list.filter_map(|number| number.parse().ok()).collect()
        };
        let times = |name: &str| {
            numbers(name)
                .into_iter()
                .map(|number| number as u32)
                .collect()
        };
        let days: Option<Vec<(i64, i64)>> = parts
            .get("BYDAY")
            .into_iter()
            .flat_map(|list| list.split(','))
            .map(day)
            .collect();
        let rule = Rule {
            freq: (*parts.get("FREQ")?).to_owned(),
            interval: numbers("INTERVAL").first().copied().unwrap_or(1),
            count: numbers("COUNT").first().map(|count| *count as usize),
            week_start: parts.get("WKST").map_or(Some((1, 0)), |name| day(name))?.0,
            months: numbers("BYMONTH"),
            month_days: numbers("BYMONTHDAY"),
            days: days?,
            times: [times("BYHOUR"), times("BYMINUTE"), times("BYSECOND")],
        };
        let is_modelled = match rule.freq.as_str() {
            "DAILY" | "WEEKLY" | "MONTHLY" => true,
            "YEARLY" => rule.days.is_empty(),
            _ => false,
        };
        is_modelled.then_some(rule)
    }

    fn is_in_period(&self, date: NaiveDate, anchor: NaiveDate) -> bool {
        let first = |date: NaiveDate| {
            let weekday = i64::from(date.weekday().number_from_monday());
            date - Duration::days((weekday - self.week_start).rem_euclid(7))
        };
        let months = |date: NaiveDate| i64::from(date.year()) * 12 + i64::from(date.month0());
        let periods = match self.freq.as_str() {
            "DAILY" => (date - anchor).num_days(),
            "WEEKLY" => (first(date) - first(anchor)).num_days() / 7,
            "MONTHLY" => months(date) - months(anchor),
            _ => i64::from(date.year() - anchor.year()),
        };
        periods % self.interval == 0
    }

    fn has_day(&self, date: NaiveDate) -> bool {
        let length = i64::from(date.num_days_in_month());
        let number = i64::from(date.day());
        let weekday = i64::from(date.weekday().number_from_monday());
        let is_nth = |nth: i64| match nth {
            0 => true,
            1.. => (number - 1) / 7 + 1 == nth,
            _ => (length - number) / 7 + 1 == -nth,
        };
        let by_month_day =
            self.month_days.contains(&number) || self.month_days.contains(&(number - length - 1));
        let by_day = self
            .days
            .iter()
            .any(|(day, nth)| *day == weekday && is_nth(*nth));
        (self.month_days.is_empty() || by_month_day) && (self.days.is_empty() || by_day)
    }

    fn matches(&self, date: NaiveDate, anchor: NaiveDate) -> bool {
        let by_month = self.months.is_empty() || self.months.contains(&i64::from(date.month()));
        let names_no_day = self.month_days.is_empty() && self.days.is_empty();
        let by_anchor = match self.freq.as_str() {
            _ if !names_no_day => true,
            "DAILY" => true,
            "WEEKLY" => date.weekday() == anchor.weekday(),
            "MONTHLY" => date.day() == anchor.day(),
            _ => {
                date.day() == anchor.day()
                    && (!self.months.is_empty() || date.month() == anchor.month())
            }
        };
        by_month && by_anchor && self.has_day(date) && self.is_in_period(date, anchor)
    }

    /// The occurrences of the first `days` days from the anchor.
    pub fn first(&self, days: usize, anchor: NaiveDateTime) -> Vec<DateTime<Utc>> {
        let or = |list: &[u32], own: u32| {
            if list.is_empty() {
                vec![own]
            } else {
                list.to_vec()
            }
        };
        let [hours, minutes, seconds] = &self.times;
        let hours = or(hours, anchor.hour());
        let minutes = or(minutes, anchor.minute());
        let seconds = or(seconds, anchor.second());
        let mut found = Vec::new();
        for date in anchor.date().iter_days().take(days) {
            if !self.matches(date, anchor.date()) {
                continue;
            }
            for hour in &hours {
                for minute in &minutes {
                    found.extend(
                        seconds
                            .iter()
                            .filter_map(|second| date.and_hms_opt(*hour, *minute, *second)),
                    );
                }
            }
        }
        let later = found
            .into_iter()
            .filter(|at| *at >= anchor)
            .map(|at| at.and_utc());
        later.take(self.count.unwrap_or(usize::MAX)).collect()
    }
}
