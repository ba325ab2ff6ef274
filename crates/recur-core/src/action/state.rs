//! An action as it is stored: what people wrote, and what its runs have made of it.

use chrono::{DateTime, Utc};

use super::columns::Column;
use super::definition::Definition;
use super::value::{Json, Value};

/// What every run changes of an action.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timer {
    /// Does the action fire? Not while paused, nor after its end.
    pub enabled: bool,
    /// The earliest occurrence that has not been dispatched; None while not enabled.
    pub next_run_at: Option<DateTime<Utc>>,
    /// When the dispatcher looks at the action; None while not enabled.
    pub due_at: Option<DateTime<Utc>>,
    /// The occurrence that was dispatched last.
    pub last_run_at: Option<DateTime<Utc>>,
    /// How many occurrences have been dispatched.
    pub run_count: i64,
    /// How often in a row the action could not be evaluated.
    pub error_count: i64,
    /// Why the action is paused.
    pub paused_reason: Option<String>,
    /// Why the action ended.
    pub ended_reason: Option<String>,
    /// While paused: the first occurrence that is missed.
    pub missed_from: Option<DateTime<Utc>>,
}

/// An action: its definition and its state.
#[derive(Clone, Debug, PartialEq)]
pub struct Action<J> {
    /// What people wrote.
    pub definition: Definition<J>,
    /// What every run changes.
    pub timer: Timer,
    /// What is carried from one run to the next.
    pub context: Option<J>,
    /// Counts the changes of the context.
    pub context_version: i64,
    /// Was the action added beside another one of the same identity?
    pub duplicate: bool,
}

impl<J: Json> Action<J> {
    /// The value of any column that can be set.
    pub fn get(&self, column: Column) -> Value<J> {
        match column {
            Column::Context => self.context.clone().map_or(Value::Null, Value::Json),
            Column::Enabled => Value::Bool(self.timer.enabled),
            Column::PausedReason => self.timer.paused_reason.clone().into(),
            column => self.definition.get(column).clone(),
        }
    }
}
