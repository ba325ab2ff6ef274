//! From text to [`RuleSet`]: strict, and precise about what is wrong.
//!
//! The `rrule` crate is not the parser here. It takes INTERVAL as a `u16` (RFC 5545 has no such limit,
//! and a day has 86,400 seconds), and accepts INTERVAL=0, COUNT with UNTIL, empty and repeated parts,
//! BYDAY=0MO, BYMONTHDAY=0 and BYSETPOS alone. Checking each value beforehand is parsing it; so this
//! parser is all there is, and the tests hold it against that crate.

use super::error::RuleError;
use super::rule::{End, Freq, NthWeekday, Rule, WEEKDAYS, reading_order};
use super::stamp::Stamp;
use super::{MAX_COUNT, MAX_DATES, MAX_TEXT, RuleSet};

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

/// Does the line hold this property, with or without parameters?
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

/// The values of a rule's parts, by their place in [`PARTS`].
type Values<'t> = [Option<&'t str>; PARTS.len()];

fn rule(text: &str) -> Result<Rule, RuleError> {
    let values = split(text)?;
    let [freq, interval, count, until, week_start, by @ ..] = values;
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
    let freq = freq.ok_or(RuleError::MissingFreq).and_then(parse_freq)?;
    let rule = Rule {
        freq,
        interval: interval.map_or(Ok(1), parse_interval)?,
        end: match (count, until) {
            (Some(_), Some(_)) => {
                return Err(conflict(
                    "COUNT",
                    "UNTIL",
                    "only one of them can end a rule",
                ));
            }
            (Some(count), None) => End::Count(parse_count(count)?),
            (None, Some(until)) => End::Until(parse_until(until)?),
            (None, None) => End::Never,
        },
        week_start: week_start.map_or(Ok(1), parse_week_start)?,
        months: list(month, &MONTH)?,
        week_numbers: list(week_no, &WEEK_NO)?,
        year_days: list(year_day, &YEAR_DAY)?,
        month_days: list(month_day, &MONTH_DAY)?,
        weekdays: day.map_or(Ok(Vec::new()), parse_weekdays)?,
        hours: list(hour, &HOUR)?,
        minutes: list(minute, &MINUTE)?,
        seconds: leap_second_as_59(list(second, &SECOND)?),
        set_positions: list(set_pos, &SET_POS)?,
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

fn parse_freq(value: &str) -> Result<Freq, RuleError> {
    Freq::ALL
        .iter()
        .find(|(_, name)| name.eq_ignore_ascii_case(value))
        .map(|(freq, _)| *freq)
        .ok_or_else(|| {
            wrong(
                "FREQ",
                value,
                "YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY, MINUTELY or SECONDLY",
            )
        })
}

fn parse_interval(value: &str) -> Result<u32, RuleError> {
    digits(value)
        .filter(|interval| *interval > 0)
        .ok_or_else(|| wrong("INTERVAL", value, "a whole number from 1 to 4294967295"))
}

fn parse_count(value: &str) -> Result<u32, RuleError> {
    digits(value)
        .filter(|count| (1..=MAX_COUNT).contains(count))
        .ok_or_else(|| wrong("COUNT", value, "a whole number from 1 to 10000"))
}

fn parse_until(value: &str) -> Result<Stamp, RuleError> {
    Stamp::parse(value).or_else(|| Stamp::parse_last_of_day(value)).ok_or_else(|| {
        wrong(
            "UNTIL",
            value,
            "a time like 20270131T090000Z (UTC) or 20270131T090000 (local to the action's time zone), \
             or a date like 20270131 (its whole day)",
        )
    })
}

fn parse_week_start(value: &str) -> Result<u8, RuleError> {
    weekday(value).ok_or_else(|| wrong("WKST", value, "a weekday: MO, TU, WE, TH, FR, SA or SU"))
}

fn parse_weekdays(value: &str) -> Result<Vec<NthWeekday>, RuleError> {
    let mut items = Vec::new();
    for item in value.split(',') {
        items.push(nth_weekday(item).ok_or_else(|| {
            wrong(
                "BYDAY",
                item,
                "weekdays MO, TU, WE, TH, FR, SA, SU, with a number from 1 to 53 or -1 to -53 in front \
                 to choose one of the period's, like 2MO or -1FR",
            )
        })?);
    }
    items.sort_unstable_by_key(|item| (item.weekday, item.nth.map(reading_order)));
    items.dedup();
    Ok(items)
}

fn nth_weekday(item: &str) -> Option<NthWeekday> {
    let split = item
        .len()
        .checked_sub(2)
        .filter(|at| item.is_char_boundary(*at))?;
    let (number, name) = item.split_at(split);
    let nth = if number.is_empty() {
        None
    } else {
        Some(signed(number, 53)?)
    };
    Some(NthWeekday {
        weekday: weekday(name)?,
        nth,
    })
}

fn weekday(name: &str) -> Option<u8> {
    WEEKDAYS
        .iter()
        .position(|known| known.eq_ignore_ascii_case(name))
        .map(|index| index as u8 + 1)
}

/// A part that holds a list of numbers.
struct Numbers {
    part: &'static str,
    min: i16,
    max: i16,
    /// Also counted from the end, as -1 to -max.
    from_end: bool,
    expected: &'static str,
}

const fn plain(part: &'static str, min: i16, max: i16, expected: &'static str) -> Numbers {
    Numbers {
        part,
        min,
        max,
        from_end: false,
        expected,
    }
}

const fn from_either_end(part: &'static str, max: i16, expected: &'static str) -> Numbers {
    Numbers {
        part,
        min: 1,
        max,
        from_end: true,
        expected,
    }
}

const MONTH: Numbers = plain("BYMONTH", 1, 12, "months from 1 to 12");
const WEEK_NO: Numbers = from_either_end("BYWEEKNO", 53, "weeks from 1 to 53 or -1 to -53");
const YEAR_DAY: Numbers = from_either_end("BYYEARDAY", 366, "days from 1 to 366 or -1 to -366");
const MONTH_DAY: Numbers = from_either_end("BYMONTHDAY", 31, "days from 1 to 31 or -1 to -31");
const HOUR: Numbers = plain("BYHOUR", 0, 23, "hours from 0 to 23");
const MINUTE: Numbers = plain("BYMINUTE", 0, 59, "minutes from 0 to 59");
const SECOND: Numbers = plain("BYSECOND", 0, 60, "seconds from 0 to 60");
const SET_POS: Numbers = from_either_end("BYSETPOS", 366, "positions from 1 to 366 or -1 to -366");

fn list(value: Option<&str>, numbers: &Numbers) -> Result<Vec<i16>, RuleError> {
    let mut items = Vec::new();
    for item in value.map(|value| value.split(',')).into_iter().flatten() {
        let number = if numbers.from_end {
            signed(item, numbers.max)
        } else {
            digits(item)
                .and_then(|number| i16::try_from(number).ok())
                .filter(|number| (numbers.min..=numbers.max).contains(number))
        };
        items.push(number.ok_or_else(|| wrong(numbers.part, item, numbers.expected))?);
    }
    items.sort_unstable_by_key(|item| reading_order(*item));
    items.dedup();
    Ok(items)
}

/// `±n` with n from 1 to `max`.
fn signed(text: &str, max: i16) -> Option<i16> {
    let (sign, number) = match text.strip_prefix('-') {
        Some(number) => (-1, number),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = i16::try_from(digits(number)?).ok()?;
    (1..=max).contains(&number).then_some(sign * number)
}

/// Digits and nothing else: `str::parse` alone would take a `+`.
fn digits(text: &str) -> Option<u32> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

/// RFC 5545 allows BYSECOND=60 and, where clocks have no leap seconds, reads it as 59.
fn leap_second_as_59(mut seconds: Vec<i16>) -> Vec<i16> {
    for second in &mut seconds {
        *second = (*second).min(59);
    }
    seconds.dedup();
    seconds
}

/// What RFC 5545 3.3.10 says MUST NOT be combined.
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

fn wrong(part: &'static str, value: &str, expected: &'static str) -> RuleError {
    RuleError::Value {
        part,
        value: excerpt(value),
        expected,
    }
}

/// Enough of an offending text to recognise it by.
fn excerpt(text: &str) -> String {
    const MAX_CHARS: usize = 40;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn strip_prefix_ignoring_case<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix)
        .then(|| &text[prefix.len()..])
}
