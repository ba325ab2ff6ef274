//! Recurrence rules in English.

use super::Style;
use super::words::{
    count_of, date, date_and_time, every, list, list_of_times, month, ordinal, runs, time_of_day,
    weekday,
};
use crate::civil::Civil;
use crate::rrule::{End, Freq, Rule, RuleSet, Stamp};

/// More times of day than this are written as hours and minutes instead of one by one.
const MOST_TIMES: usize = 8;
/// More dates than this are counted instead of listed.
const MOST_DATES: usize = 3;

pub(super) fn describe(set: &RuleSet, style: Style) -> String {
    let rule = set.rule();
    let unit = unit(rule.freq);
    let mut text = every(rule.interval, unit);
    add_days(&mut text, rule);
    add_times(&mut text, rule, style);
    if !rule.set_positions.is_empty() {
        let positions: Vec<String> = rule.set_positions.iter().map(|n| ordinal(*n)).collect();
        text += &format!(", only the {} of these in each {unit}", list(&positions));
    }
    if rule.week_start != 1 {
        let day = weekday(rule.week_start.into());
        text += &format!(", with weeks that begin on {day}");
    }
    match rule.end {
        End::Never => {}
        End::Count(1) => text += ", once",
        End::Count(count) => text += &format!(", {}", count_of(count, "time")),
        End::Until(until) => text += &format!(", until {}", last_time(until, style)),
    }
    if !set.excluded().is_empty() {
        text += &format!(", except {}", dates(set.excluded(), style));
    }
    if !set.added().is_empty() {
        text += &format!(", and also {}", dates(set.added(), style));
    }
    text
}

fn unit(freq: Freq) -> &'static str {
    match freq {
        Freq::Yearly => "year",
        Freq::Monthly => "month",
        Freq::Weekly => "week",
        Freq::Daily => "day",
        Freq::Hourly => "hour",
        Freq::Minutely => "minute",
        Freq::Secondly => "second",
    }
}

/// The parts that choose days. The first part names the days, unless the period is a day or less; all
/// further parts restrict them.
fn add_days(text: &mut String, rule: &Rule) {
    if !rule.months.is_empty() {
        let only = if rule.freq == Freq::Yearly {
            ""
        } else {
            ", only"
        };
        let names = runs(&from_start(&rule.months), |number| month(number).to_owned());
        *text += &format!("{only} in {}", list(&names));
    }
    if !rule.week_numbers.is_empty() {
        *text += &format!(" in {} of the year", numbered("week", &rule.week_numbers));
    }
    let mut names = Vec::new();
    if !rule.year_days.is_empty() {
        names.push(format!("{} of the year", numbered("day", &rule.year_days)));
    }
    if !rule.month_days.is_empty() {
        names.push(numbered("day", &rule.month_days) + of_the_month(rule));
    }
    if !rule.weekdays.is_empty() {
        names.push(weekdays(rule));
    }
    for (index, name) in names.iter().enumerate() {
        *text += &match index {
            0 if rule.freq < Freq::Daily => format!(" on {name}"),
            0 => format!(", only on {name}"),
            _ => format!(", only if it is {name}"),
        };
    }
}

/// " of the month", except in a month rule, where it is clear.
fn of_the_month(rule: &Rule) -> &'static str {
    match rule.freq {
        Freq::Monthly => "",
        _ => " of the month",
    }
}

/// `day 1, 15, and the last day`.
fn numbered(unit: &str, numbers: &[i16]) -> String {
    let mut items = runs(&from_start(numbers), |number| number.to_string());
    if let Some(first) = items.first_mut() {
        *first = format!("{unit} {first}");
    }
    let from_end = numbers.iter().filter(|number| **number < 0);
    items.extend(from_end.map(|number| format!("the {} {unit}", ordinal(*number))));
    list(&items)
}

/// `Friday, the first Monday, and the last Monday of the month`.
fn weekdays(rule: &Rule) -> String {
    let every_one: Vec<u16> = rule
        .weekdays
        .iter()
        .filter(|day| day.nth.is_none())
        .map(|day| day.weekday.into())
        .collect();
    let mut items = runs(&every_one, |day| weekday(day).to_owned());
    let mut of = "";
    for day in &rule.weekdays {
        if let Some(nth) = day.nth {
            items.push(format!(
                "the {} {}",
                ordinal(nth),
                weekday(day.weekday.into())
            ));
            of = match rule.freq == Freq::Yearly && rule.months.is_empty() {
                true => " of the year",
                false => of_the_month(rule),
            };
        }
    }
    list(&items) + of
}

/// The parts that choose times of day. Parts finer than FREQ add times, the others restrict them.
fn add_times(text: &mut String, rule: &Rule, style: Style) {
    if let Some(times) = few_times_of_day(rule, style) {
        *text += &format!(" at {}", list_of_times(&times));
        return;
    }
    let numbers = |numbers: &[i16]| list(&runs(&from_start(numbers), |n| n.to_string()));
    let parts = [
        (
            &rule.seconds,
            Freq::Secondly,
            "at",
            "second",
            " past the minute",
        ),
        (
            &rule.minutes,
            Freq::Minutely,
            "at",
            "minute",
            " past the hour",
        ),
        (&rule.hours, Freq::Hourly, "in", "hour", " of the day"),
    ];
    let mut separator = " ";
    for (values, unit, preposition, name, of) in parts {
        if values.is_empty() {
            continue;
        }
        if rule.freq >= unit {
            separator = ", only ";
        }
        let values = numbers(values);
        *text += &match name {
            "hour" => format!("{separator}{preposition} hour {values}{of}"),
            _ if values == "1" => format!("{separator}{preposition} 1 {name}{of}"),
            _ => format!("{separator}{preposition} {values} {name}s{of}"),
        };
        separator = ", ";
    }
    // The start determines the units that the rule leaves open.
    if rule.freq < Freq::Hourly && rule.hours.is_empty() && separator != " " {
        *text += ", in the hour of the start";
    }
    if rule.freq < Freq::Hourly && rule.minutes.is_empty() && separator != " " {
        *text += ", at the minute of the start";
    }
}

/// All times of day, where the rule names hours and minutes and has few combinations of them.
fn few_times_of_day(rule: &Rule, style: Style) -> Option<Vec<String>> {
    if rule.freq > Freq::Daily || rule.hours.is_empty() || rule.minutes.is_empty() {
        return None;
    }
    let seconds = if rule.seconds.is_empty() {
        &[0][..]
    } else {
        &rule.seconds
    };
    if rule.hours.len() * rule.minutes.len() * seconds.len() > MOST_TIMES {
        return None;
    }
    let mut times = Vec::new();
    for hour in &rule.hours {
        for minute in &rule.minutes {
            for second in seconds {
                let time = i64::from(*hour) * 3_600 + i64::from(*minute) * 60 + i64::from(*second);
                times.push(time_of_day(style, time));
            }
        }
    }
    Some(times)
}

fn last_time(until: Stamp, style: Style) -> String {
    match until {
        Stamp::Local(civil) if civil.second_of_day() == 86_399 => {
            format!("the end of {}", date(civil))
        }
        until => stamp(until, style),
    }
}

fn dates(stamps: &[Stamp], style: Style) -> String {
    if stamps.len() > MOST_DATES {
        return format!("{} listed times", stamps.len());
    }
    let dates: Vec<String> = stamps.iter().map(|time| stamp(*time, style)).collect();
    format!("on {}", list(&dates))
}

fn stamp(stamp: Stamp, style: Style) -> String {
    match stamp {
        Stamp::Local(civil) => date_and_time(style, civil),
        Stamp::Utc(instant) => format!("{} UTC", date_and_time(style, Civil(instant))),
    }
}

/// The numbers counted from the start of the period.
fn from_start(numbers: &[i16]) -> Vec<u16> {
    numbers
        .iter()
        .filter_map(|number| u16::try_from(*number).ok())
        .collect()
}
