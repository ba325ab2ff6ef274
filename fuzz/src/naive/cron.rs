//! A second reader of cron expressions, and a walk through the calendar.

use super::clock::{resolve, shown};
use chrono::{DateTime, Datelike, Duration, NaiveDate, NaiveTime, Timelike, Utc, Weekday};
use chrono_tz::Tz;
use recurrence::{OnFold, OnGap};
use std::collections::BTreeSet;

/// Values from the first to the last, in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    first: u32,
    last: u32,
    step: u32,
}

impl Span {
    fn holds(&self, value: u32) -> bool {
        (self.first..=self.last).contains(&value) && (value - self.first).is_multiple_of(self.step)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Plain(Span),
    Nearest(u32),
    LastDay,
    LastWorkday,
    Nth(Span, u32),
    Last(Span),
}

/// A field: None is a bare `*` or `?`.
type Field = Option<Vec<Item>>;

/// A cron expression as its fields.
#[derive(Clone, Debug)]
pub struct Cron {
    seconds: Field,
    minutes: Field,
    hours: Field,
    days: Field,
    months: Field,
    weekdays: Field,
    years: Field,
    both: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Time,
    Day,
    Month,
    Weekday,
    Year,
}

const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

fn number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let value: u64 = text.parse().ok().filter(|_| is_number)?;
    u32::try_from(value).ok().filter(|value| *value <= 65_535)
}

fn value(kind: Kind, (min, max): (u32, u32), text: &str) -> Option<u32> {
    let names: &[&str] = match kind {
        Kind::Month => &MONTHS,
        Kind::Weekday => &WEEKDAYS,
        _ => &[],
    };
    let named = names
        .iter()
        .position(|name| *name == text)
        .map(|index| index as u32);
    let named = named.map(|index| index + u32::from(kind == Kind::Month));
    named.or(number(text).filter(|value| (min..=max).contains(value)))
}

fn range(kind: Kind, limits: (u32, u32), text: &str) -> Option<Span> {
    let (first, last) = match text.split_once('-') {
        None => {
            let only = value(kind, limits, text)?;
            (only, only)
        }
        Some((first, "SUN")) if kind == Kind::Weekday => (value(kind, limits, first)?, 7),
        Some((first, last)) => (value(kind, limits, first)?, value(kind, limits, last)?),
    };
    (first <= last).then_some(Span {
        first,
        last,
        step: 1,
    })
}

fn item(kind: Kind, limits: (u32, u32), text: &str) -> Option<Item> {
    match kind {
        // pg_cron writes the last day as `$`.
        Kind::Day if text == "L" || text == "$" => return Some(Item::LastDay),
        Kind::Day if text == "LW" => return Some(Item::LastWorkday),
        Kind::Day if text.ends_with('W') => {
            return value(kind, limits, &text[..text.len() - 1]).map(Item::Nearest);
        }
        Kind::Weekday if text.contains('#') => {
            let (days, nth) = text.split_once('#')?;
            let days = range(kind, limits, days)?;
            return match nth {
                "L" => Some(Item::Last(days)),
                nth => number(nth)
                    .filter(|n| nth.len() == 1 && (1..=5).contains(n))
                    .map(|n| Item::Nth(days, n)),
            };
        }
        Kind::Weekday if text.ends_with('L') => {
            return range(kind, limits, &text[..text.len() - 1]).map(Item::Last);
        }
        _ => {}
    }
    let Some((range_text, step)) = text.split_once('/') else {
        return range(kind, limits, text).map(Item::Plain);
    };
    // Sunday is two values.
    let size = limits.1 - limits.0 + u32::from(kind != Kind::Weekday);
    let step = number(step).filter(|step| (1..=size).contains(step))?;
    if range_text == "*" {
        return Some(Item::Plain(Span {
            first: limits.0,
            last: limits.1,
            step,
        }));
    }
    let span = range(kind, limits, range_text).filter(|_| range_text.contains('-'))?;
    Some(Item::Plain(Span { step, ..span }))
}

/// The outer option is whether the field can be read.
fn field(kind: Kind, limits: (u32, u32), text: &str) -> Option<Field> {
    let takes_question_mark = matches!(kind, Kind::Day | Kind::Weekday);
    if text == "*" || (text == "?" && takes_question_mark) {
        return Some(None);
    }
    // pg_cron's lists with a `*`: all values, and in a day field no restriction only where the `*` comes first.
    let named = text.split(',').filter(|text| *text != "*");
    let items: Option<Vec<Item>> = named.map(|text| item(kind, limits, text)).collect();
    let all = Item::Plain(Span {
        first: limits.0,
        last: limits.1,
        step: 1,
    });
    Some(match text.split(',').position(|text| text == "*") {
        None => Some(items?),
        Some(0) => items.map(|_| None)?,
        Some(_) if takes_question_mark => items.map(|_| Some(vec![all]))?,
        Some(_) => items.map(|_| None)?,
    })
}

fn holds(field: &Field, value: u32) -> bool {
    let plain = |item: &Item| matches!(item, Item::Plain(span) if span.holds(value));
    field.as_ref().is_none_or(|items| items.iter().any(plain))
}

/// Does the field have a `*` or a `/`, so that the expression steps?
fn steps(text: &str) -> bool {
    text.contains(['*', '/'])
}

impl Cron {
    /// Reads an expression; None where it is malformed. Whether any date matches is another question.
    pub fn read(text: &str) -> Option<(Cron, bool)> {
        let upper = text.to_ascii_uppercase();
        let mut words: Vec<&str> = upper.split_ascii_whitespace().collect();
        match words.len() {
            5 => {
                words.insert(0, "0");
                words.push("*");
            }
            6 => words.push("*"),
            7 => {}
            _ => return None,
        }
        let weekdays = words[5].strip_prefix('+').unwrap_or(words[5]);
        let cron = Cron {
            seconds: field(Kind::Time, (0, 59), words[0])?,
            minutes: field(Kind::Time, (0, 59), words[1])?,
            hours: field(Kind::Time, (0, 23), words[2])?,
            days: field(Kind::Day, (1, 31), words[3])?,
            months: field(Kind::Month, (1, 12), words[4])?,
            weekdays: field(Kind::Weekday, (0, 7), weekdays)?,
            years: field(Kind::Year, (1970, 9999), words[6])?,
            both: words[5].starts_with('+'),
        };
        let is_stepping = words[..3].iter().any(|word| steps(word));
        Some((cron, is_stepping))
    }

    /// Does a date match?
    pub fn matches_date(&self, date: NaiveDate) -> bool {
        if !holds(&self.months, date.month()) || !holds(&self.years, date.year().unsigned_abs()) {
            return false;
        }
        let by_day = self
            .days
            .as_ref()
            .map(|items| items.iter().any(|item| is_day(item, date)));
        let by_weekday = self
            .weekdays
            .as_ref()
            .map(|items| items.iter().any(|item| is_weekday(item, date)));
        match (by_day, by_weekday) {
            (None, None) => true,
            (Some(one), None) | (None, Some(one)) => one,
            (Some(day), Some(weekday)) if self.both => day && weekday,
            (Some(day), Some(weekday)) => day || weekday,
        }
    }

    fn matches_time(&self, hour: u32, minute: u32) -> bool {
        holds(&self.hours, hour) && holds(&self.minutes, minute)
    }

    fn seconds(&self) -> Vec<u32> {
        (0..60)
            .filter(|second| holds(&self.seconds, *second))
            .collect()
    }

    /// All times of a day that match.
    pub fn times(&self) -> Vec<NaiveTime> {
        let seconds = self.seconds();
        let mut times = Vec::new();
        for minute in 0..1_440 {
            if self.matches_time(minute / 60, minute % 60) {
                let with = |second: &u32| {
                    NaiveTime::from_num_seconds_from_midnight_opt(minute * 60 + second, 0)
                };
                times.extend(seconds.iter().filter_map(with));
            }
        }
        times
    }

    /// Is there a date that matches, in the 400 years after which the calendar repeats?
    pub fn has_date(&self) -> bool {
        let years = match &self.years {
            None => 2000..=2399,
            Some(_) => 1970..=9999,
        };
        years.filter(|year| holds(&self.years, *year)).any(|year| {
            (1..=12)
                .filter(|month| holds(&self.months, *month))
                .any(|month| {
                    let first = NaiveDate::from_ymd_opt(year as i32, month, 1).expect("a month");
                    first
                        .iter_days()
                        .take_while(|date| date.month() == month)
                        .any(|date| self.matches_date(date))
                })
        })
    }

    /// The first matching reading after an instant in UTC; None where the walk of some years finds none.
    pub fn next_in_utc(&self, after: DateTime<Utc>, days: usize) -> Option<DateTime<Utc>> {
        let reading = after.naive_utc();
        let times = self.times();
        for date in reading.date().iter_days().take(days) {
            if self.matches_date(date) {
                let next = times.iter().find(|time| date.and_time(**time) > reading);
                if let Some(time) = next {
                    return Some(date.and_time(*time).and_utc());
                }
            }
        }
        None
    }

    /// The instants after one and up to another that match in a zone.
    pub fn between(
        &self,
        is_stepping: bool,
        tz: Tz,
        (from, until): (DateTime<Utc>, DateTime<Utc>),
        (gap, fold): (OnGap, OnFold),
    ) -> BTreeSet<DateTime<Utc>> {
        let mut found = BTreeSet::new();
        if is_stepping {
            let mut at = from + Duration::seconds(1);
            while at <= until {
                let local = shown(tz, at);
                let matches = holds(&self.seconds, local.second())
                    && self.matches_time(local.hour(), local.minute());
                if matches && self.matches_date(local.date()) {
                    found.insert(at);
                }
                at += Duration::seconds(1);
            }
            return found;
        }
        let times = self.times();
        let first = from.date_naive() - Duration::days(3);
        let last = until.date_naive() + Duration::days(3);
        for date in first.iter_days().take_while(|date| *date <= last) {
            if self.matches_date(date) {
                found.extend(
                    times
                        .iter()
                        .flat_map(|time| resolve(tz, date.and_time(*time), gap, fold)),
                );
            }
        }
        found.retain(|at| *at > from && *at <= until);
        found
    }
}

fn month_length(date: NaiveDate) -> u32 {
    u32::from(date.num_days_in_month())
}

fn is_workday(date: NaiveDate) -> bool {
    !matches!(date.weekday(), Weekday::Sat | Weekday::Sun)
}

fn is_day(item: &Item, date: NaiveDate) -> bool {
    match item {
        Item::Plain(span) => span.holds(date.day()),
        Item::LastDay => date.day() == month_length(date),
        Item::LastWorkday => {
            let later = date
                .iter_days()
                .skip(1)
                .take_while(|later| later.month() == date.month());
            is_workday(date) && !later.take(31).any(is_workday)
        }
        Item::Nearest(day) => {
            // The day itself, then the nearest days, the earlier before the later.
            let near = date.with_day(*day).and_then(|wanted| {
                let nearest = [0, -1, 1, -2, 2]
                    .into_iter()
                    .map(|days| wanted + Duration::days(days));
                nearest
                    .into_iter()
                    .find(|near| near.month() == wanted.month() && is_workday(*near))
            });
            near == Some(date)
        }
        Item::Nth(..) | Item::Last(_) => false,
    }
}

fn is_weekday(item: &Item, date: NaiveDate) -> bool {
    let number = date.weekday().num_days_from_sunday();
    // Sunday is 0 and 7.
    let is_in = |span: &Span| span.holds(number) || (number == 0 && span.holds(7));
    match item {
        Item::Plain(span) => is_in(span),
        Item::Nth(span, nth) => is_in(span) && (date.day() - 1) / 7 + 1 == *nth,
        Item::Last(span) => is_in(span) && date.day() + 7 > month_length(date),
        _ => false,
    }
}
