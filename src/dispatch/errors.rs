//! Errors of actions: they are kept on the action, recorded as events, and in the end pause the action.

use crate::history::events::{self, WorkerEvents};
use crate::pg::query::{pg_uuids, queries};
use crate::pg::time;
use crate::pg::transaction::Failure;
use crate::runtime::settings;
use chrono::{DateTime, Utc};
use recur_core::event::EventKind;
use serde_json::json;
use std::collections::HashMap;
use uuid::Uuid;

queries! {
    RECORD_ERRORS = "dispatch/queries/record_errors.sql" (UUIDARRAYOID, TEXTARRAYOID, TIMESTAMPTZOID, INT4OID);
}

/// Why an action could not be dispatched.
pub struct ActionError {
    action: Uuid,
    sqlstate: String,
    message: String,
}

impl ActionError {
    pub fn from_failure(action: Uuid, failure: Failure) -> ActionError {
        ActionError {
            action,
            message: failure.to_string(),
            sqlstate: failure.sqlstate,
        }
    }

    /// A definition that can't be evaluated counts as an invalid argument.
    pub fn bad_definition(action: Uuid, message: String) -> ActionError {
        ActionError {
            action,
            sqlstate: "22023".to_owned(),
            message,
        }
    }
}

/// Records errors with their actions, pauses actions that have failed too often in a row, and notifies their contacts.
pub fn record(errors: Vec<ActionError>, now: DateTime<Utc>) {
    if errors.is_empty() {
        return;
    }
    let recorded = store(&errors, now);
    let by_action: HashMap<Uuid, &ActionError> =
        errors.iter().map(|error| (error.action, error)).collect();
    let mut new_events = WorkerEvents::default();
    let mut problems = Vec::new();
    for one in recorded {
        let Some(ActionError {
            sqlstate, message, ..
        }) = by_action.get(&one.action)
        else {
            continue;
        };
        pgrx::warning!(
            "pg_recur dispatcher: action failed action={} sqlstate={sqlstate} errors_in_a_row={} paused={} \
             message={message:?}",
            one.action,
            one.errors_in_a_row,
            one.paused
        );
        let detail = json!({ "error": message, "sqlstate": sqlstate, "errors_in_a_row": one.errors_in_a_row });
        new_events.add(one.action, EventKind::Failed, &detail);
        if one.paused {
            let detail = json!({ "reason": format!("{} errors in a row", one.errors_in_a_row) });
            new_events.add(one.action, EventKind::Paused, &detail);
        }
        if one.paused || one.errors_in_a_row == settings::error_threshold() {
            problems.push((one.action, message.clone()));
        }
    }
    new_events.record();
    events::notify_contacts(problems);
}

/// What became of an action whose error was recorded.
struct RecordedError {
    action: Uuid,
    errors_in_a_row: i32,
    paused: bool,
}

/// Keeps each error on its action, and pauses actions as `recur.pause_after_errors` says.
fn store(errors: &[ActionError], now: DateTime<Utc>) -> Vec<RecordedError> {
    let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
    let arguments = [
        pg_uuids(errors.iter().map(|error| error.action)).into(),
        messages.into(),
        time::timestamptz(now).into(),
        settings::pause_after_errors().into(),
    ];
    RECORD_ERRORS.with(|query| {
        query.rows(&arguments, |row| RecordedError {
            action: row.uuid(1),
            errors_in_a_row: row.required(2),
            paused: row.required(3),
        })
    })
}
