//! What is recorded of a change.

use super::definition::Definition;
use super::value::{Json, Value};
pub use crate::event::EventKind;

/// A value of an event's detail. JSON values stay as they are: the server puts the object together.
#[derive(Clone, Debug, PartialEq)]
pub enum Detail<J> {
    /// A value of its own.
    Value(Value<J>),
    /// An object in the object.
    Object(Vec<(&'static str, Value<J>)>),
}

/// An event: what happened, and the keys and values of its detail.
#[derive(Clone, Debug, PartialEq)]
pub struct Event<J> {
    /// What happened.
    pub kind: EventKind,
    /// More about it.
    pub detail: Vec<(&'static str, Detail<J>)>,
}

impl<J: Json> Event<J> {
    pub(super) fn new(kind: EventKind) -> Event<J> {
        Event {
            kind,
            detail: Vec::new(),
        }
    }

    pub(super) fn with(mut self, key: &'static str, value: impl Into<Value<J>>) -> Event<J> {
        self.detail.push((key, Detail::Value(value.into())));
        self
    }

    /// A value that may be missing.
    pub(super) fn with_some(
        self,
        key: &'static str,
        value: Option<impl Into<Value<J>>>,
    ) -> Event<J> {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    pub(super) fn with_object(
        mut self,
        key: &'static str,
        object: Vec<(&'static str, Value<J>)>,
    ) -> Event<J> {
        self.detail.push((key, Detail::Object(object)));
        self
    }

    /// What people know the action by, and when it recurs.
    pub(super) fn with_identity(self, definition: &Definition<J>) -> Event<J> {
        self.with("name", definition.name())
            .with("namespace", definition.namespace())
            .with("tenant", definition.tenant())
            .with_some("subject", definition.subject())
            .with("schedule", definition.schedule())
            .with("timezone", definition.timezone())
    }
}
