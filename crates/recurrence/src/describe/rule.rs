//! Structured rules in English.

use super::Style;
use super::words::{every, list, ordinal, runs, time_of_day, weekday};
use crate::rule::{Hours, MonthDay, StructuredRule, Unit, Weekdays};

pub(super) fn describe(rule: &StructuredRule, style: Style) -> String {
    let mut text = every(rule.every(), rule.unit().name());
    if let Some(day) = rule.month_day() {
        text += &match day {
            // A month without that day runs on its last.
            MonthDay::Day(day @ 29..) => {
                format!(" on day {day} or the last day of a shorter month")
            }
            MonthDay::Day(day) => format!(" on day {day}"),
            MonthDay::NthWeekday { nth, weekday: day } => {
                format!(" on the {} {}", ordinal(nth.into()), weekday(day.into()))
            }
            MonthDay::LastWeekday { weekday: day } => {
                format!(" on the last {}", weekday(day.into()))
            }
        };
    }
    if let Some(days) = rule.days_of_week() {
        // The weekdays define a week rule, and restrict the others.
        let only = if rule.unit() == Unit::Week {
            ""
        } else {
            ", only"
        };
        text += &format!("{only} on {}", weekdays(days));
    }
    if let Some(parity) = rule.week_parity() {
        text += &format!(", in {parity} ISO weeks");
    }
    if let Some(Hours { start, end }) = rule.between_hours() {
        let hour = |hour: u8| time_of_day(style, i64::from(hour) * 3_600);
        text += &format!(", between {} and {}", hour(start), hour(end));
    }
    text
}

fn weekdays(days: Weekdays) -> String {
    let numbers: Vec<u16> = days.iter().map(u16::from).collect();
    list(&runs(&numbers, |day| weekday(day).to_owned()))
}
