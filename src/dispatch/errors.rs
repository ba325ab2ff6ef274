//! Errors of actions: they are kept on the action, recorded as events, and in the end pause the action.

use crate::access::Actor;
use crate::alerts::contacts::{self, Message, RECIPIENT_COLUMNS, RECIPIENT_WIDTH, Recipient};
use crate::history::events::WorkerEvents;
use crate::history::lines;
use crate::pg::log::{self, Level};
use crate::pg::query::{pg_uuids, queries};
use crate::pg::time;
use crate::pg::transaction::Failure;
use crate::runtime::{clock, settings};
use chrono::{DateTime, Utc};
use recur_core::event::EventKind;
use recur_core::notice::{Problem, Streak};
use serde_json::json;
use std::collections::HashMap;
use uuid::Uuid;

queries! {
    RECORD_ERRORS = "dispatch/queries/record_errors.sql" {recipient: RECIPIENT_COLUMNS}
        (UUIDARRAYOID, TEXTARRAYOID, TIMESTAMPTZOID, INT4OID);
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
    let mut messages = Vec::new();
    for one in &recorded {
        let action = one.recipient.action;
        let Some(ActionError {
            sqlstate, message, ..
        }) = by_action.get(&action)
        else {
            continue;
        };
        let name = &one.recipient.name;
        log::write(Level::Warning, || {
            format!(
                "pg_recur: recurring.dispatch_error name={name:?} id={action} sqlstate={sqlstate} \
                 errors_in_a_row={} paused={} message={message:?}",
                one.errors_in_a_row, one.paused
            )
        });
        let detail = json!({ "error": message, "sqlstate": sqlstate, "errors_in_a_row": one.errors_in_a_row });
        new_events.add(action, EventKind::Failed, &detail);
        if one.paused {
            let detail = json!({ "reason": format!("{} errors in a row", one.errors_in_a_row) });
            new_events.add(action, EventKind::Paused, &detail);
            lines::changed(EventKind::Paused, action, name, &Actor::worker());
        }
        if one.is_notified() {
            messages.push(one.message(message));
        }
    }
    new_events.record();
    contacts::tell(&messages, clock::now());
}

/// What became of an action whose error was recorded.
struct RecordedError {
    recipient: Recipient,
    errors_in_a_row: i32,
    paused: bool,
    /// The occurrence that could not be dispatched.
    since: Option<DateTime<Utc>>,
}

impl RecordedError {
    /// An action that is paused is news, however many errors there were before.
    fn is_notified(&self) -> bool {
        let streak = match self.paused {
            true => Streak {
                in_a_row: i32::MAX,
                new: i32::MAX,
            },
            false => Streak {
                in_a_row: self.errors_in_a_row,
                new: 1,
            },
        };
        self.recipient.is_notified(streak, clock::now())
    }

    fn message(&self, error: &str) -> Message<'_> {
        let report = self.recipient.report(self.since);
        Message {
            recipient: &self.recipient,
            kind: EventKind::Notified,
            notice: report.failing(Problem::Dispatching {
                error,
                is_paused: self.paused,
            }),
            dispatch: None,
            alarm: None,
        }
    }
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
            recipient: Recipient::read(row),
            errors_in_a_row: row.required(RECIPIENT_WIDTH + 1),
            paused: row.required(RECIPIENT_WIDTH + 2),
            since: row.instant(RECIPIENT_WIDTH + 3),
        })
    })
}
