//! Structured rules: read from JSON and walked candidate by candidate.

use super::clock::{resolve, shown};
use chrono::{DateTime, Datelike, Duration, Months, NaiveDate, NaiveDateTime, Timelike, Utc};
use chrono_tz::Tz;
use recurrence::{OnFold, OnGap};
use serde_json::{Map, Value};

/// A rule as it is written.
#[derive(Clone, Debug)]
pub struct Rule {
    every: i64,
    unit: String,
    days: Option<Vec<u32>>,
    is_odd: Option<bool>,
    hours: Option<(u32, u32)>,
    day: Option<MonthDay>,
}

#[derive(Clone, Copy, Debug)]
enum MonthDay {
    Day(u32),
    Nth(i64, u32),
}

const DAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

fn weekday(value: &Value) -> Option<u32> {
    match value {
        Value::String(name) => {
            let lower = name.to_ascii_lowercase();
            let is_named = |day: &str| day == lower || day[..3] == lower;
            DAYS.iter()
                .position(|day| is_named(day))
                .map(|index| index as u32 + 1)
        }
        other => other
            .as_u64()
            .filter(|day| (1..=7).contains(day))
            .map(|day| day as u32),
    }
}

fn month_day(keys: &Map<String, Value>) -> Option<Option<MonthDay>> {
    Some(match (keys.get("day_of_month"), keys.get("nth_weekday")) {
        (None, None) => None,
        (Some(day), None) => match day.as_i64()? {
            -1 => Some(MonthDay::Day(31)),
            day @ 1..=31 => Some(MonthDay::Day(day as u32)),
            _ => return None,
        },
        (None, Some(nth)) => {
            let parts = nth.as_object().filter(|parts| parts.len() == 2)?;
            let nth = parts
                .get("nth")?
                .as_i64()
                .filter(|nth| (1..=5).contains(nth) || *nth == -1)?;
            Some(MonthDay::Nth(nth, weekday(parts.get("day")?)?))
        }
        _ => return None,
    })
}

/// The keys in their own spelling; None where a key is unknown, or comes twice.
fn spelled(given: &Map<String, Value>) -> Option<Map<String, Value>> {
    const NAMES: [[&str; 2]; 7] = [
        ["everyInterval", "every"],
        ["everyUnit", "unit"],
        ["daysOfWeek", "days_of_week"],
        ["weekParity", "week_parity"],
        ["betweenHours", "between_hours"],
        ["dayOfMonth", "day_of_month"],
        ["nthWeekday", "nth_weekday"],
    ];
    const ENDS: [[&str; 2]; 2] = [
        ["betweenHoursStart", "betweenHoursEnd"],
        ["between_hours_start", "between_hours_end"],
    ];
    let given: Vec<(&String, &Value)> =
        given.iter().filter(|(_, value)| !value.is_null()).collect();
    let find = |name: &str| {
        given
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| *value)
    };
    let mut pairs: Vec<(&str, Value)> = Vec::new();
    for (key, value) in &given {
        if ENDS.iter().flatten().any(|end| end == key) {
            continue;
        }
        let names = NAMES
            .iter()
            .find(|names| names.iter().any(|name| name == key))?;
        pairs.push((names[1], (*value).clone()));
    }
    for [start, end] in ENDS {
        match (find(start), find(end)) {
            (None, None) => {}
            (start, end) => pairs.push((
                "between_hours",
                Value::Array(vec![start?.clone(), end?.clone()]),
            )),
        }
    }
    if let Some(place) = pairs
        .iter()
        .position(|(key, value)| *key == "every" && value.is_object())
    {
        let parts = pairs[place]
            .1
            .as_object()
            .filter(|parts| parts.len() == 2)?
            .clone();
        pairs[place].1 = parts.get("interval")?.clone();
        pairs.push(("unit", parts.get("unit")?.clone()));
    }
    let count = pairs.len();
    let mut keys: Map<String, Value> = pairs
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    let is_any = keys
        .get("week_parity")
        .is_some_and(|parity| parity == "any");
    if is_any {
        keys.remove("week_parity");
    }
    (keys.len() + usize::from(is_any) == count).then_some(keys)
}

impl Rule {
    /// Reads a rule; None where it is refused.
    pub fn read(text: &str) -> Option<Rule> {
        let value: Value = serde_json::from_str(text).ok()?;
        let keys = &spelled(value.as_object()?)?;
        let unit = keys.get("unit")?.as_str()?;
        let most = match unit.strip_suffix('s').unwrap_or(unit) {
            "minute" => 60_000_000,
            "hour" => 1_000_000,
            "day" => 366_000,
            "week" => 52_000,
            "month" => 12_000,
            "year" => 1_000,
            _ => return None,
        };
        let every = keys.get("every")?.as_u64();
        let mut every = every.filter(|every| (1..=most).contains(every))? as i64;
        let mut unit = unit.strip_suffix('s').unwrap_or(unit).to_owned();
        if unit == "year" {
            (every, unit) = (every * 12, "month".to_owned());
        }
        let days = match keys.get("days_of_week") {
            None => None,
            Some(days) => {
                let days: Option<Vec<u32>> = days.as_array()?.iter().map(weekday).collect();
                Some(days.filter(|days| !days.is_empty())?)
            }
        };
        let is_odd = match keys.get("week_parity").map(|parity| parity.as_str()) {
            None => None,
            Some(Some("odd")) => Some(true),
            Some(Some("even")) => Some(false),
            Some(_) => return None,
        };
        let hours = match keys.get("between_hours") {
            None => None,
            Some(hours) => {
                let [start, end] = hours.as_array()?.as_slice() else {
                    return None;
                };
                let (start, end) = (
                    start.as_u64().filter(|hour| *hour < 24)?,
                    end.as_u64().filter(|hour| *hour <= 24)?,
                );
                Some((start as u32, end as u32 % 24))
            }
        };
        let day = month_day(keys)?;
        let is_sound = match (day, &days) {
            (Some(_), _) if unit != "month" => false,
            (Some(MonthDay::Nth(_, day)), Some(days)) => days.contains(&day),
            _ => true,
        };
        is_sound.then_some(Rule {
            every,
            unit,
            days,
            is_odd,
            hours,
            day,
        })
    }

    fn passes(&self, local: NaiveDateTime) -> bool {
        let weekday = local.date().weekday().number_from_monday();
        let by_day = self.unit == "week"
            || self
                .days
                .as_ref()
                .is_none_or(|days| days.contains(&weekday));
        let by_week = self
            .is_odd
            .is_none_or(|is_odd| (local.date().iso_week().week() % 2 == 1) == is_odd);
        by_day && by_week && self.passes_hour(local.hour())
    }

    fn passes_hour(&self, hour: u32) -> bool {
        self.hours.is_none_or(|(start, end)| match start < end {
            true => start <= hour && hour < end,
            false => start == end || hour >= start || hour < end,
        })
    }

    fn day_of(&self, first: NaiveDate, anchor: NaiveDate) -> Option<NaiveDate> {
        let length = u32::from(first.num_days_in_month());
        match self.day {
            None => first.with_day(anchor.day().min(length)),
            Some(MonthDay::Day(day)) => first.with_day(day.min(length)),
            Some(MonthDay::Nth(nth, weekday)) => {
                let dates = (1..=length).filter_map(|day| first.with_day(day));
                let mut matching =
                    dates.filter(|date| date.weekday().number_from_monday() == weekday);
                match nth {
                    -1 => matching.next_back(),
                    nth => matching.nth(nth as usize - 1),
                }
            }
        }
    }

    /// The date of step `k` from the anchor; None where there is none.
    fn dates(&self, anchor: NaiveDate, k: i64) -> Vec<NaiveDate> {
        let monday = anchor - Duration::days(i64::from(anchor.weekday().num_days_from_monday()));
        let step = |days: i64| Duration::try_days(days * self.every);
        match (self.unit.as_str(), &self.days) {
            ("month", _) => {
                let months = u32::try_from(k * self.every).unwrap_or(u32::MAX);
                let first = anchor
                    .with_day(1)
                    .and_then(|first| first.checked_add_months(Months::new(months)));
                first
                    .and_then(|first| self.day_of(first, anchor))
                    .into_iter()
                    .collect()
            }
            ("week", Some(days)) => {
                let first = step(7 * k).and_then(|step| monday.checked_add_signed(step));
                let in_week = |day: u32| Some(first? + Duration::days(i64::from(day) - 1));
                (1..=7)
                    .filter(|day| days.contains(day))
                    .filter_map(in_week)
                    .collect()
            }
            ("week", None) => step(7 * k)
                .and_then(|step| anchor.checked_add_signed(step))
                .into_iter()
                .collect(),
            _ => step(k)
                .and_then(|step| anchor.checked_add_signed(step))
                .into_iter()
                .collect(),
        }
    }

    /// The occurrences of the first `steps` steps from the start, and the instant up to which they are complete.
    pub fn first(
        &self,
        steps: i64,
        tz: Tz,
        start: DateTime<Utc>,
        (gap, fold): (OnGap, OnFold),
    ) -> (Vec<DateTime<Utc>>, DateTime<Utc>) {
        let seconds = match self.unit.as_str() {
            "minute" => 60,
            "hour" => 3_600,
            _ => 0,
        };
        if seconds > 0 {
            let at = |k: i64| start + Duration::seconds(k * seconds * self.every);
            let found = (0..steps).map(at).filter(|at| self.passes(shown(tz, *at)));
            return (found.collect(), at(steps) - Duration::seconds(1));
        }
        let anchor = shown(tz, start);
        let mut found: Vec<DateTime<Utc>> = Vec::new();
        for date in (0..steps).flat_map(|k| self.dates(anchor.date(), k)) {
            let local = date.and_time(anchor.time());
            if local < anchor {
                continue;
            }
            // The start is the first occurrence, in either pass of a repeated hour.
            let instants = match local == anchor && fold != OnFold::Both {
                true => vec![start],
                false => resolve(tz, local, gap, fold),
            };
            found.extend(
                instants
                    .into_iter()
                    .filter(|at| *at >= start && self.passes(shown(tz, *at))),
            );
        }
        found.sort_unstable();
        found.dedup();
        // A month without its n-th weekday, or a clock change, may come at the end.
        let last = self
            .dates(anchor.date(), steps - 1)
            .first()
            .copied()
            .unwrap_or(anchor.date());
        (
            found,
            last.and_time(anchor.time()).and_utc() - Duration::days(7),
        )
    }
}
