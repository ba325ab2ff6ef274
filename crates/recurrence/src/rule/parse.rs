//! Reading a structured rule from JSON, strictly.

use serde_json::{Map, Value};

use super::{Hours, MonthDay, Parity, StructuredRule, Unit, WEEKDAYS, Weekdays, spelling};
use crate::error::ScheduleError;
use crate::text::excerpt;

/// A step of more than 1,000 years is a mistake.
const MAX_EVERY: [(Unit, u64); 6] = [
    (Unit::Minute, 60_000_000),
    (Unit::Hour, 1_000_000),
    (Unit::Day, 366_000),
    (Unit::Week, 52_000),
    (Unit::Month, 12_000),
    (Unit::Year, 1_000),
];

pub(super) fn rule(text: &str) -> Result<StructuredRule, ScheduleError> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| ScheduleError::new(format!("rule is not valid JSON: {error}")))?;
    let Value::Object(mut keys) = value else {
        return Err(ScheduleError::new("rule is not a JSON object"));
    };
    spelling::canonicalize(&mut keys)?;
    if let Some(key) = keys
        .keys()
        .find(|key| !spelling::KEYS.contains(&key.as_str()))
    {
        return Err(spelling::unknown_key(key));
    }
    let unit = take_unit(&mut keys)?;
    let every = take_every(&mut keys, unit)?;
    let days_of_week = take_days_of_week(&mut keys)?
        // All seven days restrict nothing, except in a week rule, whose step they define.
        .filter(|days| unit == Unit::Week || days.bits != 0x7f);
    let week_parity = take_week_parity(&mut keys)?;
    let between_hours = take_between_hours(&mut keys)?;
    let month_day = take_month_day(&mut keys)?;
    if month_day.is_some() && !matches!(unit, Unit::Month | Unit::Year) {
        return Err(ScheduleError::new(format!(
            "rule has day_of_month or nth_weekday with unit \"{}\", expected unit \"month\" or \"year\"",
            unit.name()
        )));
    }
    let named = match month_day {
        Some(MonthDay::NthWeekday { weekday, .. } | MonthDay::LastWeekday { weekday }) => {
            Some(weekday)
        }
        _ => None,
    };
    if let (Some(weekday), Some(days)) = (named, days_of_week)
        && !days.contains(weekday)
    {
        return Err(ScheduleError::new(
            "rule never occurs: days_of_week does not hold the day of nth_weekday",
        ));
    }
    Ok(StructuredRule {
        every,
        unit,
        days_of_week,
        week_parity,
        between_hours,
        month_day,
    })
}

pub(super) fn wrong(key: &str, value: &Value, expected: &str) -> ScheduleError {
    ScheduleError::new(format!(
        "rule has {key} {}, expected {expected}",
        excerpt(&value.to_string())
    ))
}

fn take_unit(keys: &mut Map<String, Value>) -> Result<Unit, ScheduleError> {
    const EXPECTED: &str = "\"minute\", \"hour\", \"day\", \"week\", \"month\" or \"year\"";
    let value = keys
        .remove("unit")
        .ok_or_else(|| ScheduleError::new(format!("rule has no unit, expected {EXPECTED}")))?;
    // "weeks" beside a number reads as well as "week".
    let name = value.as_str().unwrap_or_default();
    let name = name.strip_suffix('s').unwrap_or(name);
    MAX_EVERY
        .iter()
        .map(|(unit, _)| *unit)
        .find(|unit| unit.name() == name)
        .ok_or_else(|| wrong("unit", &value, EXPECTED))
}

fn take_every(keys: &mut Map<String, Value>, unit: Unit) -> Result<u32, ScheduleError> {
    let max = MAX_EVERY
        .iter()
        .find(|(limited, _)| *limited == unit)
        .map_or(1, |(_, max)| *max);
    let expected = format!("a whole number from 1 to {max}");
    match keys.remove("every") {
        None => Err(ScheduleError::new(format!(
            "rule has no every, expected {expected}"
        ))),
        Some(value) => match value.as_u64() {
            Some(every) if (1..=max).contains(&every) => Ok(every as u32),
            _ => Err(wrong("every", &value, &expected)),
        },
    }
}

fn take_days_of_week(keys: &mut Map<String, Value>) -> Result<Option<Weekdays>, ScheduleError> {
    const EXPECTED: &str = "a list of weekdays: \"mon\" to \"sun\", or 1 (Monday) to 7 (Sunday)";
    let Some(value) = keys.remove("days_of_week") else {
        return Ok(None);
    };
    let refused = || wrong("days_of_week", &value, EXPECTED);
    let mut bits = 0;
    for day in value.as_array().ok_or_else(refused)? {
        bits |= 1 << (weekday(day).ok_or_else(refused)? - 1);
    }
    match bits {
        0 => Err(refused()),
        bits => Ok(Some(Weekdays { bits })),
    }
}

/// The ISO number of a weekday, given by its name or that number.
fn weekday(value: &Value) -> Option<u8> {
    const FULL: [&str; 7] = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];
    if let Some(number) = value.as_u64() {
        return (1..=7).contains(&number).then_some(number as u8);
    }
    let name = value.as_str()?;
    let index = (0..7).find(|index| {
        name.eq_ignore_ascii_case(WEEKDAYS[*index]) || name.eq_ignore_ascii_case(FULL[*index])
    })?;
    Some(index as u8 + 1)
}

fn take_week_parity(keys: &mut Map<String, Value>) -> Result<Option<Parity>, ScheduleError> {
    match keys.remove("week_parity") {
        None => Ok(None),
        Some(Value::String(name)) if name == "odd" => Ok(Some(Parity::Odd)),
        Some(Value::String(name)) if name == "even" => Ok(Some(Parity::Even)),
        Some(other) => Err(wrong("week_parity", &other, "\"odd\" or \"even\"")),
    }
}

fn take_between_hours(keys: &mut Map<String, Value>) -> Result<Option<Hours>, ScheduleError> {
    let Some(value) = keys.remove("between_hours") else {
        return Ok(None);
    };
    let refused = || {
        wrong(
            "between_hours",
            &value,
            "[start, end] in whole hours, start 0 to 23 and end 0 to 24",
        )
    };
    let Some([start, end]) = value.as_array().map(Vec::as_slice) else {
        return Err(refused());
    };
    match (start.as_u64(), end.as_u64()) {
        (Some(start @ 0..=23), Some(end @ 0..=24)) => {
            // 24 is the midnight that ends the day, 0 of the next day. Equal hours restrict nothing.
            let hours = Hours {
                start: start as u8,
                end: (end % 24) as u8,
            };
            Ok((hours.start != hours.end).then_some(hours))
        }
        _ => Err(refused()),
    }
}

fn take_month_day(keys: &mut Map<String, Value>) -> Result<Option<MonthDay>, ScheduleError> {
    let day = take_day_of_month(keys)?;
    let nth = take_nth_weekday(keys)?;
    match (day, nth) {
        (Some(_), Some(_)) => Err(ScheduleError::new(
            "rule has both day_of_month and nth_weekday, expected one of them",
        )),
        (day, nth) => Ok(day.or(nth)),
    }
}

fn take_day_of_month(keys: &mut Map<String, Value>) -> Result<Option<MonthDay>, ScheduleError> {
    let Some(value) = keys.remove("day_of_month") else {
        return Ok(None);
    };
    match value.as_i64() {
        Some(day @ 1..=31) => Ok(Some(MonthDay::Day(day as u8))),
        // The last day of any month, because 31 is clamped to it.
        Some(-1) => Ok(Some(MonthDay::Day(31))),
        _ => Err(wrong(
            "day_of_month",
            &value,
            "1 to 31, or -1 for the last day",
        )),
    }
}

fn take_nth_weekday(keys: &mut Map<String, Value>) -> Result<Option<MonthDay>, ScheduleError> {
    let Some(value) = keys.remove("nth_weekday") else {
        return Ok(None);
    };
    let refused = || {
        wrong(
            "nth_weekday",
            &value,
            "{\"nth\":1,\"day\":\"mon\"} with nth 1 to 5, or -1 for the last",
        )
    };
    let parts = value.as_object().ok_or_else(refused)?;
    let (Some(nth), Some(weekday), 2) = (
        parts.get("nth").and_then(Value::as_i64),
        parts.get("day").and_then(weekday),
        parts.len(),
    ) else {
        return Err(refused());
    };
    match nth {
        1..=5 => Ok(Some(MonthDay::NthWeekday {
            nth: nth as u8,
            weekday,
        })),
        -1 => Ok(Some(MonthDay::LastWeekday { weekday })),
        _ => Err(refused()),
    }
}
