//! Journeys, as docs/journeys.md describes them.

use serde_json::Value;
use std::collections::BTreeMap;

/// The type of each state and the states that may follow, by id.
pub type States = BTreeMap<String, (String, Vec<String>)>;

/// The states of a text; None where it is to be refused.
pub fn read(text: &str) -> Option<States> {
    let value: Value = serde_json::from_str(text).ok()?;
    let states = match value.get("kind").and_then(Value::as_str) {
        Some("Journey") => value
            .get("states")
            .or_else(|| value.pointer("/spec/states"))?,
        Some(_) => return None,
        None => without_kind(&value),
    };
    let mut read = States::new();
    match states {
        Value::Object(object) => {
            for (id, state) in object {
                if state.get("id").is_some_and(|named| named != id.as_str()) {
                    return None;
                }
                read.insert(sound(id)?, state_of(state)?);
            }
        }
        Value::Array(list) => {
            for state in list {
                let id = sound(state.get("id")?.as_str()?)?;
                if read.insert(id, state_of(state)?).is_some() {
                    return None;
                }
            }
        }
        _ => return None,
    }
    let is_closed = read
        .values()
        .all(|(_, next)| next.iter().all(|next| read.contains_key(next)));
    (is_closed && !read.is_empty()).then_some(read)
}

/// A list as `states` can be no state. Otherwise, an entry that has a type is a state, and so all entries are.
fn without_kind(value: &Value) -> &Value {
    let states = value.get("states");
    let entries = value.as_object().into_iter().flatten();
    let has_states = entries
        .filter_map(|(_, entry)| entry.get("type"))
        .any(Value::is_string);
    match states {
        Some(Value::Array(_)) => states,
        Some(Value::Object(_)) if !has_states => states,
        _ if !has_states => value.pointer("/spec/states"),
        _ => None,
    }
    .unwrap_or(value)
}

fn sound(text: &str) -> Option<String> {
    (!text.trim().is_empty() && text.chars().count() <= 100).then(|| text.to_owned())
}

fn state_of(state: &Value) -> Option<(String, Vec<String>)> {
    let fields = state.as_object()?;
    let known = ["id", "type", "next"];
    if fields.keys().any(|key| !known.contains(&key.as_str())) {
        return None;
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let next = match fields.get("next").unwrap_or(&Value::Null) {
        Value::Null => Vec::new(),
        Value::Array(several) => several.iter().map(text).collect::<Option<_>>()?,
        one => vec![text(one)?],
    };
    Some((sound(fields.get("type")?.as_str()?)?, next))
}

/// The number of steps from one state to each other: all pairs, over every state in between.
pub fn distances(states: &States) -> BTreeMap<(String, String), usize> {
    let mut known = BTreeMap::new();
    for (id, (_, next)) in states {
        for next in next {
            known.insert((id.clone(), next.clone()), 1);
        }
        known.insert((id.clone(), id.clone()), 0);
    }
    for between in states.keys() {
        for from in states.keys() {
            for to in states.keys() {
                let first = known.get(&(from.clone(), between.clone())).copied();
                let second = known.get(&(between.clone(), to.clone())).copied();
                let (Some(first), Some(second)) = (first, second) else {
                    continue;
                };
                let best = known
                    .entry((from.clone(), to.clone()))
                    .or_insert(usize::MAX);
                *best = (*best).min(first + second);
            }
        }
    }
    known
}
