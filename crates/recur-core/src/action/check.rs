//! The checks of single values, one for each kind of column.

use std::sync::Arc;

use recurrence::{Schedule, Zone};
use uuid::Uuid;

use super::backoff;
use super::columns::{Column, Kind};
use super::environment::Environment;
use super::interval::Interval;
use super::invalid::Invalid;
use super::value::{Json, Value};
use crate::event::RecordedEvents;
use crate::policy::Horizon;

const LONGEST_NAME: usize = 255;
const LONGEST_TEXT: usize = 10_000;
/// The server cuts longer names of channels.
const LONGEST_CHANNEL: usize = 63;
const LONGEST_HORIZON: Interval = Interval {
    months: 120,
    days: 0,
    micros: 0,
};

/// The value of a column in the form in which it is stored, or why it is refused.
pub fn checked<J: Json>(
    column: Column,
    value: &Value<J>,
    environment: &Environment<'_>,
) -> Result<Value<J>, Invalid> {
    let spec = column.spec();
    if value.is_null() {
        return match spec.is_nullable() {
            true => Ok(Value::Null),
            false => Err(Invalid::missing(spec.name)),
        };
    }
    match (spec.kind, value) {
        (Kind::Schedule, Value::Text(text)) => {
            return schedule(spec.name, text, environment)
                .map(|schedule| schedule.to_string().into());
        }
        (Kind::Timezone, Value::Text(name)) => {
            return zone(spec.name, name).map(|zone| zone.name().into());
        }
        (Kind::Name, Value::Text(text)) => {
            check_name(spec.name, text)?;
            if column == Column::Name {
                check_is_no_id(text)?;
            }
        }
        (Kind::Text, Value::Text(text)) => bounded(spec.name, text)?,
        (Kind::Channel, Value::Text(text)) => channel(spec.name, text)?,
        (Kind::Choice(choices), Value::Text(text)) => choice(spec.name, text, choices)?,
        (Kind::Count { min }, Value::Int(number)) => int(spec.name, *number, min)?,
        (Kind::Int, Value::Int(number)) => int(spec.name, *number, i64::from(i32::MIN))?,
        (Kind::Interval { may_be_zero }, Value::Interval(interval)) => {
            interval.check(spec.name, may_be_zero)?;
            if column == Column::Horizon {
                horizon(spec.name, *interval)?;
            }
        }
        (Kind::JsonObject, Value::Json(json)) => check_object(spec.name, json, environment)?,
        (Kind::Labels, Value::Json(json)) => labels(spec.name, json, environment)?,
        (Kind::Backoff, Value::Json(json)) => {
            check_object(spec.name, json, environment)?;
            backoff::check(spec.name, &json.text())?;
        }
        (Kind::Events, Value::Text(text)) => return recorded_events(spec.name, text),
        (Kind::Instant, Value::Instant(_)) | (Kind::Bool, Value::Bool(_)) => {}
        (kind, _) => {
            let problem = format!("must be of type {}", kind.sql_type());
            return Err(Invalid::argument(spec.name, &value.text(), &problem));
        }
    }
    Ok(value.clone())
}

fn recorded_events<J: Json>(argument: &str, text: &str) -> Result<Value<J>, Invalid> {
    let recorded: Result<RecordedEvents, _> = text.parse();
    recorded
        .map(|recorded| recorded.to_string().into())
        .map_err(|error| {
            Invalid::argument(argument, text, error.problem())
                .with_hint("Leave it out to use recur.record_events.")
        })
}

/// Refuses a text that is no name: blank, or longer than 255 characters.
pub fn check_name(argument: &str, text: &str) -> Result<(), Invalid> {
    let problem = if text.trim().is_empty() {
        "must not be empty"
    } else if text.chars().count() > LONGEST_NAME {
        "must not be longer than 255 characters"
    } else {
        return Ok(());
    };
    let hint = format!("Give {argument} as a text of 1 to {LONGEST_NAME} characters.");
    Err(Invalid::argument(argument, text, problem).with_hint(hint))
}

/// Refuses a name that reads as an id: where a function takes an id or a name, it would mean another action.
fn check_is_no_id(text: &str) -> Result<(), Invalid> {
    if Uuid::parse_str(text.trim()).is_err() {
        return Ok(());
    }
    let argument = Column::Name.name();
    Err(
        Invalid::argument(argument, text, "reads as the id of an action").with_hint(
            "Put a word before it, such as \"invoice \": a uuid alone always means an id.",
        ),
    )
}

fn bounded(argument: &str, text: &str) -> Result<(), Invalid> {
    if text.chars().count() <= LONGEST_TEXT {
        return Ok(());
    }
    let problem = format!("must not be longer than {LONGEST_TEXT} characters");
    let hint = format!("Give {argument} as a text of at most {LONGEST_TEXT} characters.");
    Err(Invalid::argument(argument, text, &problem).with_hint(hint))
}

fn channel(argument: &str, text: &str) -> Result<(), Invalid> {
    match text.len() {
        1..=LONGEST_CHANNEL => Ok(()),
        _ => Err(Invalid::argument(argument, text, "must have 1 to 63 bytes")
            .with_hint("Leave it out to use recur.notify_channel.")),
    }
}

/// Beyond [`Horizon::LONGEST_REACH`](crate::policy::Horizon::LONGEST_REACH) nothing is dispatched ahead.
fn horizon(argument: &str, interval: Interval) -> Result<(), Invalid> {
    if interval.compare(LONGEST_HORIZON).is_le() {
        return Ok(());
    }
    let problem = "must not be longer than 10 years";
    Err(
        Invalid::argument(argument, &interval.to_string(), problem).with_hint(format!(
            "At most {} dispatches of an action lie ahead, whatever its horizon is.",
            Horizon::LARGEST_COUNT
        )),
    )
}

pub(super) fn choice(argument: &str, text: &str, choices: &[&str]) -> Result<(), Invalid> {
    if choices.contains(&text) {
        return Ok(());
    }
    let problem = format!("must be {}", alternatives(choices));
    Err(Invalid::argument(argument, text, &problem))
}

/// "a, b or c".
fn alternatives(choices: &[&str]) -> String {
    match choices {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn int(argument: &str, number: i64, min: i64) -> Result<(), Invalid> {
    let max = i64::from(i32::MAX);
    let problem = match number {
        _ if number < min => format!("must be at least {min}"),
        _ if number > max => format!("must be at most {max}"),
        _ => return Ok(()),
    };
    Err(Invalid::argument(argument, &number.to_string(), &problem))
}

/// Refuses a JSON value that is no object, or too large: payloads, contexts and results.
pub fn check_object<J: Json>(
    argument: &str,
    json: &J,
    environment: &Environment<'_>,
) -> Result<(), Invalid> {
    check_size(argument, json, environment)?;
    if json.is_object() {
        return Ok(());
    }
    let hint = format!("Give {argument} as an object such as '{{\"key\": \"value\"}}'.");
    Err(Invalid::argument(argument, &json.text(), "must be a JSON object").with_hint(hint))
}

/// Before anything else: a value that is too large is not even printed.
fn check_size<J: Json>(
    argument: &str,
    json: &J,
    environment: &Environment<'_>,
) -> Result<(), Invalid> {
    check_bytes(argument, json.size(), environment)
}

/// Refuses a JSON value that takes more bytes than recur.max_payload allows: results, which may be of any type.
pub fn check_bytes(
    argument: &str,
    size: usize,
    environment: &Environment<'_>,
) -> Result<(), Invalid> {
    let most = environment.limits.max_payload_bytes;
    if size <= most {
        return Ok(());
    }
    let problem = format!("must not have more than {most} bytes");
    Err(
        Invalid::argument(argument, &format!("{size} bytes"), &problem)
            .with_hint("Store large data in a table, and refer to its row."),
    )
}

fn labels<J: Json>(argument: &str, json: &J, environment: &Environment<'_>) -> Result<(), Invalid> {
    check_size(argument, json, environment)?;
    let text = json.text();
    let is_flat = match serde_json::from_str(&text) {
        Ok(serde_json::Value::Object(object)) => object.values().all(serde_json::Value::is_string),
        _ => false,
    };
    if is_flat {
        return Ok(());
    }
    let hint = format!("Give {argument} as a flat object such as '{{\"team\": \"billing\"}}'.");
    Err(Invalid::argument(
        argument,
        &text,
        "must be a JSON object with only strings as values",
    )
    .with_hint(hint))
}

pub(super) fn schedule(
    argument: &str,
    text: &str,
    environment: &Environment<'_>,
) -> Result<Arc<Schedule>, Invalid> {
    (environment.parse_schedule)(text).map_err(|error| {
        let invalid = Invalid::argument(argument, text, &error.to_string());
        match error.hint() {
            Some(hint) => invalid.with_hint(hint),
            None => invalid,
        }
    })
}

pub(super) fn zone(argument: &str, name: &str) -> Result<Zone, Invalid> {
    Zone::parse(name).map_err(|error| {
        Invalid::argument(argument, name, "not an IANA time zone").with_hint(error.hint())
    })
}
