//! Checks of single values, each with the one error text that create, update and a plain UPDATE all show.

use super::schedule;
use crate::guc;
use crate::pg::error::{OrRaise, SqlError, given};
use pgrx::JsonB;
use pgrx::prelude::*;
use serde_json::Value;

const LONGEST_NAME: usize = 255;

/// `recur._check_name(argument, value)`: 1 to 255 characters, not only blanks.
#[pg_extern(sql = false)]
fn check_name(argument: Option<&str>, value: Option<&str>) -> bool {
    name_problem(argument.unwrap_or("value"), value).or_raise();
    true
}

/// `recur._check_optional_name(argument, value)`: the same, or NULL.
#[pg_extern(sql = false)]
fn check_optional_name(argument: Option<&str>, value: Option<&str>) -> bool {
    value.is_none() || check_name(argument, value)
}

/// `recur._check_routing(…)`: all names of a dispatch.
#[pg_extern(sql = false)]
fn check_routing(
    provider: Option<&str>,
    action_type: Option<&str>,
    namespace: Option<&str>,
    tenant: Option<&str>,
    subject: Option<&str>,
    dedup_key: Option<&str>,
    lock_group: Option<&str>,
) -> bool {
    let required = [
        ("provider", provider),
        ("action_type", action_type),
        ("namespace", namespace),
        ("tenant", tenant),
    ];
    let optional = [
        ("subject", subject),
        ("dedup_key", dedup_key),
        ("lock_group", lock_group),
    ];
    let given = optional.into_iter().filter(|(_, value)| value.is_some());
    for (argument, value) in required.into_iter().chain(given) {
        name_problem(argument, value).or_raise();
    }
    true
}

fn name_problem(argument: &str, value: Option<&str>) -> Result<(), SqlError> {
    let value = value.unwrap_or("");
    let problem = if value.trim().is_empty() {
        "must not be empty"
    } else if value.chars().count() > LONGEST_NAME {
        "must not be longer than 255 characters"
    } else {
        return Ok(());
    };
    Err(
        SqlError::invalid_argument(argument, value, problem).with_hint(format!(
            "Give {argument} as a text of 1 to {LONGEST_NAME} characters."
        )),
    )
}

/// `recur._check_object(argument, value)`: a JSON object.
#[pg_extern(sql = false)]
fn check_object(argument: Option<&str>, value: Option<JsonB>) -> bool {
    let argument = argument.unwrap_or("value");
    let value = value.map_or(Value::Null, |json| json.0);
    if !value.is_object() {
        SqlError::invalid_argument(argument, &value.to_string(), "must be a JSON object")
            .with_hint(format!(
                "Give {argument} as an object such as '{{\"key\": \"value\"}}'."
            ))
            .raise();
    }
    true
}

/// `recur._check_labels(argument, value)`: a JSON object whose values are all strings.
#[pg_extern(sql = false)]
fn check_labels(argument: Option<&str>, value: Option<JsonB>) -> bool {
    let argument = argument.unwrap_or("value");
    let value = value.map_or(Value::Null, |json| json.0);
    let flat = value
        .as_object()
        .is_some_and(|object| object.values().all(Value::is_string));
    if !flat {
        SqlError::invalid_argument(
            argument,
            &value.to_string(),
            "must be a JSON object with only strings as values",
        )
        .with_hint(format!(
            "Give {argument} as a flat object such as '{{\"team\": \"billing\"}}'."
        ))
        .raise();
    }
    true
}

/// `recur._check_choice(argument, value, choices)`.
#[pg_extern(sql = false)]
fn check_choice(argument: Option<&str>, value: Option<&str>, choices: Option<Vec<String>>) -> bool {
    let argument = argument.unwrap_or("value");
    let choices = choices.unwrap_or_default();
    let known = value.is_some_and(|value| choices.iter().any(|choice| choice == value));
    if !known {
        SqlError::invalid_argument(
            argument,
            value.unwrap_or("NULL"),
            &format!("must be {}", alternatives(&choices)),
        )
        .raise();
    }
    true
}

/// "a, b or c".
fn alternatives(choices: &[String]) -> String {
    match choices {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// `recur._check_number(argument, value, at_least)`.
#[pg_extern(sql = false)]
fn check_number(argument: Option<&str>, value: Option<i32>, at_least: Option<i32>) -> bool {
    let (argument, at_least) = (argument.unwrap_or("value"), at_least.unwrap_or(i32::MIN));
    if value.is_none_or(|value| value < at_least) {
        let shown = value.map_or("NULL".to_owned(), |value| value.to_string());
        SqlError::invalid_argument(argument, &shown, &format!("must be at least {at_least}"))
            .raise();
    }
    true
}

/// `recur._check_spacing(schedule)`: the answer depends on the schedule alone, never on when it is asked.
#[pg_extern(sql = false)]
fn check_spacing(schedule: Option<&str>) -> bool {
    let schedule = given("schedule", schedule).or_raise();
    let least = guc::min_interval();
    let gap = schedule::parse_schedule(schedule).or_raise().shortest_gap();
    if let Some(gap) = gap.filter(|gap| *gap < least) {
        SqlError::invalid_argument(
            "schedule",
            schedule,
            &format!("it can recur after {gap:?}, and recur.min_interval is {least:?}"),
        )
        .with_hint("Choose a schedule with longer pauses.")
        .raise();
    }
    true
}
