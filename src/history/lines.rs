//! What happens to actions, as lines of the server's log under stable names: `recurring.create name="nightly" id=…`.

use crate::access::Actor;
use crate::pg::log::{self, Level};
use crate::pg::query::{pg_uuids, queries};
use crate::pg::time;
use chrono::{DateTime, Utc};
use recur_core::event::EventKind;
use std::collections::HashMap;
use uuid::Uuid;

queries! {
    NAMES = "history/queries/names.sql" (UUIDARRAYOID);
}

/// Somebody created, changed or deleted an action.
pub fn changed(kind: EventKind, action: Uuid, name: &str, actor: &Actor) {
    if let Some(verb) = kind.log_verb() {
        log::write_limited(|| {
            let role = &actor.name;
            format!("pg_recur: recurring.{verb} name={name:?} id={action} role={role:?}")
        });
    }
}

/// An action has ended by itself. That it has had all of its runs is no surprise; that time or schedule ran out may be.
pub fn ended(kind: EventKind, action: Uuid, name: &str) {
    let level = match kind {
        EventKind::Exhausted => Level::Log,
        _ => Level::Warning,
    };
    if let Some(verb) = kind.log_verb() {
        log::write(level, || {
            format!("pg_recur: recurring.{verb} name={name:?} id={action}")
        });
    }
}

/// Actions have had their last run.
pub fn exhausted(actions: &[Uuid]) {
    for (action, name) in names(actions) {
        ended(EventKind::Exhausted, action, &name);
    }
}

/// Runs of an action have failed for good. What the consumer said of it stays in the table.
pub fn runs_failed(action: Uuid, name: &str, dispatch: Uuid, in_a_row: i32) {
    let verb = EventKind::RunFailed.log_verb().unwrap_or_default();
    log::write_limited(|| {
        format!(
            "pg_recur: recurring.{verb} name={name:?} id={action} dispatch={dispatch} failed_in_a_row={in_a_row}"
        )
    });
}

/// Occurrences were dispatched: (action, dispatch, occurrence).
pub fn dispatched(
    trigger: &str,
    dispatches: impl Iterator<Item = (Uuid, Uuid, DateTime<Utc>)> + Clone,
) {
    if !log::admits(Level::Debug) {
        return;
    }
    let actions: Vec<Uuid> = dispatches.clone().map(|(action, _, _)| action).collect();
    let names = names(&actions);
    let verb = EventKind::Dispatched.log_verb().unwrap_or_default();
    for (action, dispatch, occurrence) in dispatches {
        let name = names.get(&action).map_or("", String::as_str);
        log::write(Level::Debug, || {
            let at = time::rfc3339(occurrence);
            format!(
                "pg_recur: recurring.{verb} name={name:?} id={action} dispatch={dispatch} trigger={trigger} \
                 scheduled_at={at}"
            )
        });
    }
}

/// Due actions are left for later, because another transaction has locked their rows.
pub fn skipped_locked(actions: impl FnOnce() -> Vec<Uuid>) {
    if !log::admits(Level::Debug) {
        return;
    }
    for (action, name) in names(&actions()) {
        log::write(Level::Debug, || {
            format!("pg_recur: recurring.skip_locked name={name:?} id={action}")
        });
    }
}

/// The names of actions that exist.
pub fn names(actions: &[Uuid]) -> HashMap<Uuid, String> {
    if actions.is_empty() {
        return HashMap::new();
    }
    let arguments = [pg_uuids(actions.iter().copied()).into()];
    let rows = NAMES.with(|query| query.rows(&arguments, |row| (row.uuid(1), row.required(2))));
    rows.into_iter().collect()
}
