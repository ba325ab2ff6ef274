//! Findings about days that not every month has.

use chrono::{DateTime, Utc};

use super::{Code, Finding};
use crate::civil::{Date, days_in_month};
use crate::cron::{CronSpec, FieldKind, Item};
use crate::interval::Interval;
use crate::rrule::{Freq, Rule};
use crate::rule::{MonthDay, StructuredRule, Unit};
use crate::schedule::{Kind, Schedule};
use crate::zone::Zone;

/// A year with a 29 February, so that a day that it lacks is missing in every year.
const LEAP_YEAR: i32 = 2028;

pub(super) fn lint(schedule: &Schedule, zone: Zone, anchor: DateTime<Utc>) -> Option<Finding> {
    let start = zone.table().civil_at(anchor.timestamp()).date();
    match schedule.kind() {
        Kind::Cron(cron) => of_cron(cron),
        Kind::Interval(Interval::Months(step)) => {
            clamped(start.day, &months_of_steps(start, *step))
        }
        Kind::Rule(rule) => of_rule(rule, start),
        Kind::RRule(rules) => of_rrule(rules.rule(), start),
        Kind::Interval(_) | Kind::At(_) => None,
    }
}

/// Whether a month may be too short for a day. February is so in most years.
fn lacks(month: u8, day: u8) -> bool {
    day > days_in_month(LEAP_YEAR, month) || (month == 2 && day == 29)
}

/// The months that steps from a start come to.
fn months_of_steps(start: Date, step: u32) -> Vec<u8> {
    (0..12u32)
        .map(|index| ((u32::from(start.month) - 1 + index * (step % 12)) % 12) as u8 + 1)
        .collect()
}

fn skipped(day: u8, remedy: &str) -> Finding {
    let finding = match day {
        29 => "day 29 does not exist in most Februaries: no run then".to_owned(),
        30 => "day 30 does not exist in February: no run then".to_owned(),
        _ => format!("day {day} does not exist in shorter months: no run then"),
    };
    Finding::new(Code::ShortMonths, finding, remedy)
}

/// Runs on the last day of months that lack the day.
fn clamped(day: u8, months: &[u8]) -> Option<Finding> {
    months.iter().any(|month| lacks(*month, day)).then(|| {
        Finding::new(
            Code::ShortMonths,
            format!("months without a day {day} have their run on the last day"),
            "That is often meant. To skip those months, write a cron expression or an RRULE.",
        )
    })
}

fn of_cron(cron: &CronSpec) -> Option<Finding> {
    let months = cron.field(FieldKind::Month);
    let is_named = |month: u8| {
        months.is_any()
            || months.items().iter().any(|item| match *item {
                Item::Value(value) => value == u16::from(month),
                Item::Range { first, last } => (first..=last).contains(&u16::from(month)),
                _ => true,
            })
    };
    let items = cron.field(FieldKind::DayOfMonth).items();
    let days = items.iter().filter_map(|item| match *item {
        Item::Value(day) | Item::NearestWeekday(day) => u8::try_from(day).ok(),
        Item::Range { first, .. } if first >= 29 => u8::try_from(first).ok(),
        _ => None,
    });
    days.filter(|day| (1..=12).any(|month| is_named(month) && lacks(month, *day)))
        .max()
        .map(|day| skipped(day, "L is the last day of every month."))
}

fn of_rule(rule: &StructuredRule, start: Date) -> Option<Finding> {
    let step = match rule.unit() {
        Unit::Month => rule.every(),
        Unit::Year => rule.every() * 12,
        _ => return None,
    };
    let day = match rule.month_day() {
        None => start.day,
        // 31 is how the last day of any month is stored.
        Some(MonthDay::Day(day)) if day < 31 => day,
        Some(_) => return None,
    };
    clamped(day, &months_of_steps(start, step))
}

fn of_rrule(rule: &Rule, start: Date) -> Option<Finding> {
    let remedy = "BYMONTHDAY=-1 is the last day of every month.";
    let names_days = !(rule.weekdays.is_empty()
        && rule.year_days.is_empty()
        && rule.week_numbers.is_empty()
        && rule.month_days.is_empty());
    let is_named = |month: u8| match (rule.months.is_empty(), rule.freq) {
        (false, _) => rule.months.contains(&i16::from(month)),
        (true, Freq::Yearly) if !names_days => month == start.month,
        (true, _) => true,
    };
    let days: Vec<u8> = match rule.freq {
        Freq::Monthly | Freq::Yearly if !names_days => vec![start.day],
        _ => rule
            .month_days
            .iter()
            .filter_map(|day| u8::try_from(*day).ok())
            .collect(),
    };
    days.into_iter()
        .filter(|day| (1..=12).any(|month| is_named(month) && lacks(month, *day)))
        .max()
        .map(|day| skipped(day, remedy))
}
