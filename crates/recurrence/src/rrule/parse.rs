//! From text to [`RuleSet`]: strict, and precise about what is wrong.
//!
//! The `rrule` crate is only used to test this parser. It limits INTERVAL to a `u16`, less than the
//! seconds of a day, and accepts INTERVAL=0, COUNT with UNTIL, empty and repeated parts, BYDAY=0MO,
//! BYMONTHDAY=0 and BYSETPOS alone. Refusing those beforehand takes a parser of its own.

use super::error::RuleError;
use super::rule::{End, Freq, Rule};
use super::stamp::Stamp;
use super::{MAX_DATES, MAX_TEXT, RuleSet, values};
use crate::text::excerpt;

pub(super) fn rule_set(text: &str) -> Result<RuleSet, RuleError> {
    if text.len() > MAX_TEXT {
        return Err(RuleError::TooLong { length: text.len() });
    }
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or("").trim_end();
    let Some(parts) = strip_prefix_ignoring_case(first, "RRULE:") else {
        return Err(if names(first, "DTSTART") {
            RuleError::StartInText
        } else {
            RuleError::NoRule {
                line: excerpt(first),
            }
        });
    };
    let rule = rule(parts)?;
    let mut excluded = Vec::new();
    let mut added = Vec::new();
    for line in lines.map(str::trim_end) {
        if names(line, "EXDATE") {
            dates("EXDATE", line, &mut excluded)?;
        } else if names(line, "RDATE") {
            dates("RDATE", line, &mut added)?;
        } else if names(line, "DTSTART") {
            return Err(RuleError::StartInText);
        } else if names(line, "RRULE") {
            return Err(RuleError::SecondRule);
        } else {
            return Err(RuleError::UnknownLine {
                line: excerpt(line),
            });
        }
    }
    for list in [&mut excluded, &mut added] {
        list.sort_unstable();
        list.dedup();
    }
    Ok(RuleSet {
        rule,
        excluded,
        added,
    })
}

/// Whether the line has this property, with or without parameters.
fn names(line: &str, property: &str) -> bool {
    strip_prefix_ignoring_case(line, property).is_some_and(|rest| rest.starts_with([':', ';']))
}

fn dates(name: &'static str, line: &str, into: &mut Vec<Stamp>) -> Result<(), RuleError> {
    let value = &line[name.len()..];
    let Some(list) = value.strip_prefix(':') else {
        let parameter = value[1..]
            .split(':')
            .next()
            .unwrap_or("")
            .to_ascii_uppercase();
        return Err(RuleError::Parameter {
            name,
            parameter: excerpt(&parameter),
        });
    };
    for item in list.split(',') {
        into.push(Stamp::parse(item).ok_or_else(|| RuleError::Value {
            part: name,
            value: excerpt(item),
            expected: "times like 20270131T090000 (local to the action's time zone) or 20270131T090000Z (UTC)",
        })?);
    }
    if into.len() > MAX_DATES {
        return Err(RuleError::TooManyDates {
            name,
            count: into.len(),
        });
    }
    Ok(())
}

/// The parts of a rule, in canonical order.
const PARTS: [&str; 14] = [
    "FREQ",
    "INTERVAL",
    "COUNT",
    "UNTIL",
    "WKST",
    "BYMONTH",
    "BYWEEKNO",
    "BYYEARDAY",
    "BYMONTHDAY",
    "BYDAY",
    "BYHOUR",
    "BYMINUTE",
    "BYSECOND",
    "BYSETPOS",
];

/// The values of a rule's parts, by their index in [`PARTS`].
type Values<'t> = [Option<&'t str>; PARTS.len()];

fn rule(text: &str) -> Result<Rule, RuleError> {
    let [freq, interval, count, until, week_start, by @ ..] = split(text)?;
    let [
        month,
        week_no,
        year_day,
        month_day,
        day,
        hour,
        minute,
        second,
        set_pos,
    ] = by;
    let freq = freq.ok_or(RuleError::MissingFreq).and_then(values::freq)?;
    let rule = Rule {
        freq,
        interval: interval.map_or(Ok(1), values::interval)?,
        end: match (count, until) {
            (Some(_), Some(_)) => {
                return Err(conflict(
                    "COUNT",
                    "UNTIL",
                    "only one of them can end a rule",
                ));
            }
            (Some(count), None) => End::Count(values::count(count)?),
            (None, Some(until)) => End::Until(values::until(until)?),
            (None, None) => End::Never,
        },
        week_start: week_start.map_or(Ok(1), values::week_start)?,
        months: values::list(month, &values::MONTH)?,
        week_numbers: values::list(week_no, &values::WEEK_NO)?,
        year_days: values::list(year_day, &values::YEAR_DAY)?,
        month_days: values::list(month_day, &values::MONTH_DAY)?,
        weekdays: day.map_or(Ok(Vec::new()), values::weekdays)?,
        hours: values::list(hour, &values::HOUR)?,
        minutes: values::list(minute, &values::MINUTE)?,
        seconds: values::leap_second_as_59(values::list(second, &values::SECOND)?),
        set_positions: values::list(set_pos, &values::SET_POS)?,
    };
    check_combinations(&rule)?;
    Ok(rule)
}

fn split(text: &str) -> Result<Values<'_>, RuleError> {
    let mut values: Values = [None; PARTS.len()];
    let mut before = "";
    for part in text.split(';') {
        if part.is_empty() {
            return Err(RuleError::EmptyPart {
                after: excerpt(before),
            });
        }
        before = part;
        let Some((name, value)) = part.split_once('=') else {
            return Err(RuleError::NoValue {
                part: excerpt(part),
            });
        };
        let Some(index) = PARTS
            .iter()
            .position(|known| known.eq_ignore_ascii_case(name))
        else {
            return Err(RuleError::UnknownPart {
                part: excerpt(name),
            });
        };
        if value.is_empty() {
            return Err(RuleError::NoValue {
                part: excerpt(part),
            });
        }
        if values[index].replace(value).is_some() {
            return Err(RuleError::RepeatedPart { part: PARTS[index] });
        }
    }
    Ok(values)
}

/// Refuses what RFC 5545 3.3.10 says MUST NOT be combined.
fn check_combinations(rule: &Rule) -> Result<(), RuleError> {
    let with_freq = match rule.freq {
        Freq::Yearly => "FREQ=YEARLY",
        Freq::Monthly => "FREQ=MONTHLY",
        Freq::Weekly => "FREQ=WEEKLY",
        Freq::Daily => "FREQ=DAILY",
        Freq::Hourly => "FREQ=HOURLY",
        Freq::Minutely => "FREQ=MINUTELY",
        Freq::Secondly => "FREQ=SECONDLY",
    };
    if !rule.week_numbers.is_empty() && rule.freq != Freq::Yearly {
        return Err(conflict("BYWEEKNO", with_freq, "it needs FREQ=YEARLY"));
    }
    if !rule.year_days.is_empty() && matches!(rule.freq, Freq::Daily | Freq::Weekly | Freq::Monthly)
    {
        let allowed = "it needs FREQ=YEARLY, HOURLY, MINUTELY or SECONDLY";
        return Err(conflict("BYYEARDAY", with_freq, allowed));
    }
    if !rule.month_days.is_empty() && rule.freq == Freq::Weekly {
        return Err(conflict("BYMONTHDAY", with_freq, "it needs any other FREQ"));
    }
    if rule.weekdays.iter().any(|day| day.nth.is_some()) {
        let part = "BYDAY with numbers";
        if !matches!(rule.freq, Freq::Monthly | Freq::Yearly) {
            return Err(conflict(
                part,
                with_freq,
                "they need FREQ=MONTHLY or YEARLY",
            ));
        }
        if !rule.week_numbers.is_empty() {
            return Err(conflict(part, "BYWEEKNO", "use plain weekdays with it"));
        }
    }
    let others_empty = rule.months.is_empty()
        && rule.week_numbers.is_empty()
        && rule.year_days.is_empty()
        && rule.month_days.is_empty()
        && rule.weekdays.is_empty()
        && rule.hours.is_empty()
        && rule.minutes.is_empty()
        && rule.seconds.is_empty();
    if !rule.set_positions.is_empty() && others_empty {
        return Err(conflict(
            "BYSETPOS",
            with_freq,
            "it needs another BY part to choose from",
        ));
    }
    Ok(())
}

fn conflict(part: &'static str, with: &'static str, allowed: &'static str) -> RuleError {
    RuleError::Conflict {
        part,
        with,
        allowed,
    }
}

fn strip_prefix_ignoring_case<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix)
        .then(|| &text[prefix.len()..])
}
