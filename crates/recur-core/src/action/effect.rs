//! What follows from creating, pausing, resuming and deleting an action.

use chrono::{DateTime, Utc};

use super::changes::Changes;
use super::check::checked;
use super::columns::Column;
use super::definition::{Definition, default_value};
use super::demands::check_demands;
use super::environment::Environment;
use super::event::{Event, EventKind};
use super::invalid::{Code, Invalid};
use super::runs::{due_at, first_run, just_before};
use super::state::{Action, Timer};
use super::value::{Json, Value};

/// A new action and the event of its creation.
#[derive(Clone, Debug, PartialEq)]
pub struct Created<J> {
    /// What is stored; `duplicate` is false until the identity turns out to be taken.
    pub action: Action<J>,
    /// What is recorded.
    pub event: Event<J>,
}

/// What follows from a creation.
pub fn create<J: Json>(
    changes: &Changes<J>,
    now: DateTime<Utc>,
    environment: &Environment<'_>,
) -> Result<Created<J>, Invalid> {
    let definition = Definition::new(changes, now, environment)?;
    let state = |column: Column| match changes.given(column) {
        Some(value) => checked(column, value, environment),
        None => Ok(default_value(column.spec().default).unwrap_or(Value::Null)),
    };
    let context = state(Column::Context)?.as_json().cloned();
    let enabled = state(Column::Enabled)?.as_bool().unwrap_or(true);
    let paused_reason = state(Column::PausedReason)?.as_text().map(str::to_owned);
    check_reason(enabled, paused_reason.as_deref())?;
    // An occurrence exactly at starts_at counts.
    let start = definition.starts_at().map_or(now, |start| start.max(now));
    let first_run = first_run(&definition, just_before(start), now, environment)?;
    let next_run_at = enabled.then_some(first_run);
    let event = Event::new(EventKind::Created)
        .with_identity(&definition)
        .with_some("next_run_at", next_run_at);
    let timer = Timer {
        enabled,
        next_run_at,
        due_at: due_at(&definition, next_run_at, now),
        paused_reason,
        ..Timer::default()
    };
    let action = Action {
        definition,
        timer,
        completed_count: 0,
        context_version: i64::from(context.is_some()),
        context,
        duplicate: false,
        journey: None,
    };
    check_demands(&action, |_| true, environment)?;
    Ok(Created { action, event })
}

/// Only a paused action has a reason for it.
pub(super) fn check_reason(enabled: bool, reason: Option<&str>) -> Result<(), Invalid> {
    match reason {
        Some(reason) if enabled => {
            Err(
                Invalid::argument("paused_reason", reason, "the action is not paused")
                    .with_hint("recur.pause takes a reason."),
            )
        }
        _ => Ok(()),
    }
}

/// The changes that pause a running action.
pub fn pause<J: Json>(action: &Action<J>, reason: Option<&str>) -> Result<Changes<J>, Invalid> {
    let timer = &action.timer;
    if !timer.enabled {
        let (state, hint) = match timer.ended_reason {
            None => ("is paused already", "recur.resume starts it again."),
            Some(_) => (
                "has ended",
                "It goes on when a change of max_runs, ends_at or the schedule leaves it a run.",
            ),
        };
        let message = format!("action \"{}\" {state}", action.definition.name());
        return Err(Invalid::new(Code::NotInPrerequisiteState, message).with_hint(hint));
    }
    Changes::from_arguments([
        (Column::Enabled, Value::Bool(false)),
        (Column::PausedReason, reason.into()),
    ])
}

/// The changes that resume a paused action.
pub fn resume<J: Json>(action: &Action<J>) -> Result<Changes<J>, Invalid> {
    if action.timer.enabled {
        let message = format!("action \"{}\" is not paused", action.definition.name());
        return Err(Invalid::new(Code::NotInPrerequisiteState, message));
    }
    Changes::from_arguments([(Column::Enabled, Value::Bool(true))])
}

/// What follows from a deletion.
#[derive(Clone, Debug, PartialEq)]
pub struct Deleted<J> {
    /// Does the oldest action beside it take over the identity?
    pub promotes_duplicate: bool,
    /// What is recorded.
    pub event: Event<J>,
}

/// What follows from a deletion that has cancelled a number of pending dispatches.
pub fn delete<J: Json>(action: &Action<J>, cancelled_dispatches: i64) -> Deleted<J> {
    Deleted {
        promotes_duplicate: !action.duplicate,
        event: Event::new(EventKind::Deleted)
            .with_identity(&action.definition)
            .with("cancelled_dispatches", cancelled_dispatches),
    }
}
