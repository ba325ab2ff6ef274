//! Reads the states of a journey from JSON.

use super::{Graph, LONGEST_NAME, MAX_STATES, MAX_TRANSITIONS, State};
use crate::InvalidValue;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

const ARGUMENT: &str = "states";
/// The one kind of document that can be scheduled.
const KIND: &str = "Journey";
const FORM: &str = "Give an object of the states by their ids, such as '{\"charge\": {\"type\": \"task\", \"next\": \
                    [\"receipt\"]}, \"receipt\": {\"type\": \"task\"}}'.";
const STATE_FORM: &str = "A state has a type, and as next the id of each state that may follow it, branches and \
                          error paths included.";

type Checked<T> = Result<T, InvalidValue>;

impl Graph {
    /// Reads the states of a journey: an object of states by id, a list of states that have an `id` each, or a document
    /// that has either of them as `states` or `spec.states`, and whose `kind`, if it has one, is `Journey`.
    ///
    /// # Errors
    /// When the text is none of these, a state lacks its type, an id appears twice, a state that is to follow does not
    /// exist, or there are too many of them.
    pub fn parse(text: &str) -> Checked<Graph> {
        let value: Value = serde_json::from_str(text).map_err(|_| {
            InvalidValue::new(ARGUMENT, text, "is not JSON, or nested too deeply").with_hint(FORM)
        })?;
        let states = match states_of(&value)? {
            Value::Object(by_id) => from_object(by_id)?,
            Value::Array(list) => from_list(list)?,
            other => return Err(refused(other, "must be an object or a list of states")),
        };
        let graph = Graph { states };
        graph.check()?;
        Ok(graph)
    }

    fn check(&self) -> Checked<()> {
        if self.states.is_empty() {
            return Err(
                InvalidValue::new(ARGUMENT, "{}", "a journey has at least one state")
                    .with_hint(FORM),
            );
        }
        let transitions: usize = self.states.values().map(|state| state.next.len()).sum();
        if transitions > MAX_TRANSITIONS {
            let problem =
                format!("a journey has at most {MAX_TRANSITIONS} transitions between its states");
            return Err(InvalidValue::new(
                ARGUMENT,
                transitions.to_string(),
                problem,
            ));
        }
        for (id, state) in &self.states {
            if let Some(unknown) = state
                .next
                .iter()
                .find(|next| !self.states.contains_key(*next))
            {
                let problem =
                    format!("state \"{id}\" goes on to it, and the journey has no such state");
                let hint = self.nearest(unknown);
                return Err(InvalidValue::new("next", unknown, problem).with_hint(hint));
            }
        }
        Ok(())
    }

    /// Which states there are, and which of them was probably meant.
    pub fn nearest(&self, unknown: &str) -> String {
        const SHOWN: usize = 20;
        let ids = self.states.keys().map(String::as_str);
        if let Some(meant) = recurrence::nearest_name(unknown, ids.clone()) {
            return format!("Did you mean \"{meant}\"?");
        }
        let shown: Vec<&str> = ids.take(SHOWN).collect();
        let more = if self.states.len() > SHOWN {
            ", …"
        } else {
            ""
        };
        format!("Its states: {}{more}.", shown.join(", "))
    }
}

/// The states of a document, or the value itself.
fn states_of(value: &Value) -> Checked<&Value> {
    let Some(document) = value.as_object() else {
        return Ok(value);
    };
    // A state is an object, so a text is the kind of a document.
    match document.get("kind") {
        Some(Value::String(kind)) if kind == KIND => {}
        Some(Value::String(kind)) => {
            let problem = format!("only a {KIND} can be scheduled");
            let hint = format!("Documents of other kinds have no states; kind must be {KIND}.");
            return Err(InvalidValue::new("kind", kind, problem).with_hint(hint));
        }
        _ => return Ok(states_without_kind(document).unwrap_or(value)),
    }
    let inside = document.get("spec").and_then(|spec| spec.get("states"));
    document
        .get("states")
        .or(inside)
        .ok_or_else(|| refused(value, "the document has no states"))
}

/// The states of a document that does not say its kind; None where the object is one of states by id.
fn states_without_kind(document: &Map<String, Value>) -> Option<&Value> {
    let states = document.get("states");
    if states.is_some_and(Value::is_array) {
        return states;
    }
    // A state may be called "states" or "spec". It has a type, or stands beside one that has.
    let is_state = |value: &Value| value.get("type").is_some_and(Value::is_string);
    if document.values().any(is_state) {
        return None;
    }
    let inside = document.get("spec").and_then(|spec| spec.get("states"));
    states.filter(|states| states.is_object()).or(inside)
}

fn refused(value: &Value, problem: &str) -> InvalidValue {
    InvalidValue::new(ARGUMENT, value.to_string(), problem).with_hint(FORM)
}

fn check_number(count: usize) -> Checked<()> {
    if count <= MAX_STATES {
        return Ok(());
    }
    let problem = format!("a journey has at most {MAX_STATES} states");
    Err(InvalidValue::new(ARGUMENT, count.to_string(), problem)
        .with_hint("Split it into several journeys."))
}

fn from_object(by_id: &Map<String, Value>) -> Checked<BTreeMap<String, State>> {
    check_number(by_id.len())?;
    let state = |(id, value): (&String, &Value)| {
        let named = value.get("id");
        if named.is_some_and(|named| named.as_str() != Some(id)) {
            let problem = format!("it stands under \"{id}\"");
            return Err(InvalidValue::new("id", text_of(value.get("id")), problem));
        }
        Ok((name("id", id)?, state(id, value)?))
    };
    by_id.iter().map(state).collect()
}

fn from_list(list: &[Value]) -> Checked<BTreeMap<String, State>> {
    check_number(list.len())?;
    let mut states = BTreeMap::new();
    for value in list {
        let Some(Value::String(id)) = value.get("id") else {
            return Err(refused(value, "each state of a list has an id, a text"));
        };
        if states.insert(name("id", id)?, state(id, value)?).is_some() {
            return Err(InvalidValue::new("id", id, "two states have it")
                .with_hint("Give each state an id of its own."));
        }
    }
    Ok(states)
}

fn state(id: &str, value: &Value) -> Checked<State> {
    let wrong = |problem: String| {
        let argument = "state";
        Err(InvalidValue::new(argument, id, problem).with_hint(STATE_FORM))
    };
    let Some(fields) = value.as_object() else {
        return wrong("must be an object".to_owned());
    };
    // A field that is skipped could hide a way to another state.
    if let Some(other) = fields
        .keys()
        .find(|key| !["id", "type", "next"].contains(&key.as_str()))
    {
        return wrong(format!("has a field \"{other}\", which is not understood"));
    }
    let kind = match fields.get("type") {
        Some(Value::String(kind)) => name("type", kind)?,
        Some(other) => return wrong(format!("has the type {other}, which is not a text")),
        None => return wrong("has no type".to_owned()),
    };
    let next = match fields.get("next") {
        None | Some(Value::Null) => Some(BTreeSet::new()),
        Some(Value::String(next)) => Some(BTreeSet::from([next.clone()])),
        Some(Value::Array(several)) => several
            .iter()
            .map(|next| next.as_str().map(str::to_owned))
            .collect(),
        Some(_) => None,
    };
    match next {
        Some(next) => Ok(State { kind, next }),
        None => wrong("next must be the id of a state, or a list of ids".to_owned()),
    }
}

fn text_of(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

/// Refuses a text that can be no id of a state.
///
/// # Errors
/// When it is empty or too long.
pub fn check_state(id: &str) -> Checked<()> {
    name("state", id).map(|_| ())
}

/// An id or a type.
fn name(argument: &'static str, text: &str) -> Checked<String> {
    let problem = if text.trim().is_empty() {
        "must not be empty".to_owned()
    } else if text.chars().count() > LONGEST_NAME {
        format!("must not be longer than {LONGEST_NAME} characters")
    } else {
        return Ok(text.to_owned());
    };
    Err(InvalidValue::new(argument, text, problem))
}
