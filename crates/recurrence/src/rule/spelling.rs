//! The spellings of other systems, as the keys of this one.

use serde_json::{Map, Value};

use super::parse::wrong;
use crate::error::ScheduleError;
use crate::nearest::nearest_name;
use crate::text::excerpt;

/// The keys of a rule.
pub(super) const KEYS: [&str; 7] = [
    "every",
    "unit",
    "days_of_week",
    "week_parity",
    "between_hours",
    "day_of_month",
    "nth_weekday",
];

/// Other names of the keys.
const OTHER_NAMES: [(&str, &str); 7] = [
    ("daysOfWeek", "days_of_week"),
    ("weekParity", "week_parity"),
    ("betweenHours", "between_hours"),
    ("dayOfMonth", "day_of_month"),
    ("nthWeekday", "nth_weekday"),
    ("everyInterval", "every"),
    ("everyUnit", "unit"),
];

/// Both ends of the window as keys of their own.
const WINDOW_ENDS: [[&str; 2]; 2] = [
    ["betweenHoursStart", "betweenHoursEnd"],
    ["between_hours_start", "between_hours_end"],
];

/// The bounds of an action, which are no part of its schedule.
const BOUNDS: [(&[&str], &str); 4] = [
    (
        &["startAt", "start_at", "startsAt", "starts_at"],
        "starts_at",
    ),
    (
        &["endAt", "end_at", "endsAt", "ends_at", "until"],
        "ends_at",
    ),
    (&["count", "maxRuns", "max_runs"], "max_runs"),
    (&["timezone", "timeZone", "tz"], "timezone"),
];

/// Rewrites the spellings of other systems. A key that is null is as good as absent.
pub(super) fn canonicalize(keys: &mut Map<String, Value>) -> Result<(), ScheduleError> {
    keys.retain(|_, value| !value.is_null());
    for (other, key) in OTHER_NAMES {
        if let Some(value) = keys.remove(other) {
            insert(keys, key, value, other)?;
        }
    }
    for ends in WINDOW_ENDS {
        let [start, end] = ends.map(|name| keys.remove(name));
        match (start, end) {
            (None, None) => {}
            (Some(start), Some(end)) => {
                let window = Value::Array(vec![start, end]);
                insert(keys, "between_hours", window, ends[0])?;
            }
            (start, _) => {
                let (given, absent) = match start {
                    Some(_) => (ends[0], ends[1]),
                    None => (ends[1], ends[0]),
                };
                return Err(ScheduleError::new(format!(
                    "rule has {given} without {absent}, expected both or neither"
                )));
            }
        }
    }
    split_every(keys)?;
    if keys.get("week_parity").and_then(Value::as_str) == Some("any") {
        keys.remove("week_parity");
    }
    Ok(())
}

/// `"every":{"interval":2,"unit":"week"}` as `"every":2,"unit":"week"`.
fn split_every(keys: &mut Map<String, Value>) -> Result<(), ScheduleError> {
    let Some(Value::Object(parts)) = keys.get("every") else {
        return Ok(());
    };
    let (Some(interval), Some(unit), 2) = (parts.get("interval"), parts.get("unit"), parts.len())
    else {
        return Err(wrong(
            "every",
            &keys["every"],
            "a whole number, or {\"interval\":2,\"unit\":\"week\"}",
        ));
    };
    let (interval, unit) = (interval.clone(), unit.clone());
    insert(keys, "unit", unit, "every.unit")?;
    keys.insert("every".to_owned(), interval);
    Ok(())
}

fn insert(
    keys: &mut Map<String, Value>,
    key: &str,
    value: Value,
    written: &str,
) -> Result<(), ScheduleError> {
    match keys.insert(key.to_owned(), value) {
        None => Ok(()),
        Some(_) => Err(ScheduleError::new(format!(
            "rule has both {key} and {written}, expected one of them"
        ))),
    }
}

/// The error for a key that no rule has.
pub(super) fn unknown_key(key: &str) -> ScheduleError {
    let error = ScheduleError::new(format!(
        "rule has unknown key \"{}\", expected {}",
        excerpt(key),
        list(&KEYS)
    ));
    if let Some((_, bound)) = BOUNDS.iter().find(|(names, _)| names.contains(&key)) {
        return error.with_hint(format!(
            "Bounds are no part of a schedule: give {bound} as an argument of its own."
        ));
    }
    // The keys of "every":{"interval":2,"unit":"week"}, without "every" around them.
    if key == "interval" {
        return error.with_hint(r#"Did you mean "every"? Such as {"every":2,"unit":"week"}."#);
    }
    let others = OTHER_NAMES.iter().map(|(other, _)| *other);
    let window_ends = WINDOW_ENDS.into_iter().flatten();
    match nearest_name(key, KEYS.into_iter().chain(others).chain(window_ends)) {
        Some(name) => error.with_hint(format!("Did you mean \"{name}\"?")),
        None => error,
    }
}

/// `a, b or c`.
fn list(names: &[&str]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        names => names.concat(),
    }
}
