//! Writes the events of recur-core in the form of the history.

use crate::history::events::Change;
use crate::pg::jsonb::Jsonb;
use crate::pg::jsonb_object::{self, Part};
use chrono::SecondsFormat;
use recur_core::action::{Detail, Event, Json, Value};
use uuid::Uuid;

/// An event as the history records it. Payloads and contexts are copied as they are.
pub fn recorded(event: &Event<Jsonb>, action: Uuid, owner_id: i32) -> Change {
    let part = |detail: &Detail<Jsonb>| match detail {
        Detail::Value(value) => Part::Json(json(value)),
        Detail::Object(members) => Part::Object(
            members
                .iter()
                .map(|(key, value)| (*key, Part::Json(json(value))))
                .collect(),
        ),
    };
    let members = event
        .detail
        .iter()
        .map(|(key, detail)| (*key, part(detail)));
    Change {
        kind: event.kind,
        action: Some(action),
        dispatch: None,
        owner_id,
        detail: jsonb_object::object(members.collect()),
    }
}

fn json(value: &Value<Jsonb>) -> Jsonb {
    let text = match value {
        Value::Null => "null".to_owned(),
        Value::Text(text) => quoted(text),
        Value::Int(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::Instant(instant) => quoted(&instant.to_rfc3339_opts(SecondsFormat::AutoSi, false)),
        Value::Interval(interval) => quoted(&interval.to_string()),
        Value::Json(json) => return *json,
    };
    Jsonb::from_text(&text)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
