//! Writes the events of recur-core in the form of the history.

use crate::history::events::Change;
use crate::pg::jsonb::Jsonb;
use chrono::SecondsFormat;
use recur_core::action::{Detail, Event, Json, Value};
use uuid::Uuid;

/// An event as the history records it.
pub fn recorded(event: &Event<Jsonb>, action: Uuid, owner_id: i32) -> Change {
    let detail = event.detail.iter().map(|(key, detail)| match detail {
        Detail::Value(value) => member(key, &text(value)),
        Detail::Object(members) => member(
            key,
            &object(members.iter().map(|(key, value)| member(key, &text(value)))),
        ),
    });
    Change {
        kind: event.kind,
        action: Some(action),
        dispatch: None,
        owner_id,
        detail: object(detail),
    }
}

fn object(members: impl Iterator<Item = String>) -> String {
    let members: Vec<String> = members.collect();
    format!("{{{}}}", members.join(", "))
}

fn member(key: &str, value: &str) -> String {
    format!("{}: {value}", quoted(key))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A value as JSON. Payloads and contexts are copied as they are.
fn text(value: &Value<Jsonb>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Text(text) => quoted(text),
        Value::Int(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::Instant(instant) => quoted(&instant.to_rfc3339_opts(SecondsFormat::AutoSi, false)),
        Value::Interval(interval) => quoted(&interval.to_string()),
        Value::Json(json) => json.text(),
    }
}
