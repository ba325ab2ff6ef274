//! The notices that a creation sends, beside the id that it returns.

use crate::pg::error::notice;
use crate::pg::jsonb::Jsonb;
use crate::pg::log::PerStatement;
use chrono::{DateTime, Utc};
use recur_core::action::{
    Action, Changes, Column, Environment, OVERLAP_WITHOUT_CONTEXT, runs_at_once, warning,
};
use recurrence::Warning;

/// A statement that creates thousands of actions says this often what it would say of each.
const MOST_IN_A_STATEMENT: u32 = 10;

/// Says that the first run is far away, that the action falls silent for long, or that it runs at once.
pub fn of_creation(action: &Action<Jsonb>, now: DateTime<Utc>, environment: &Environment<'_>) {
    let name = action.definition.name();
    if let Some(warning) = warning(action, now, environment) {
        limited(
            || match warning {
                Warning::FarFirstRun(_) => format!("action \"{name}\": {warning}"),
                Warning::Silence(_) => {
                    format!("action \"{name}\" falls silent for more than a year: {warning}")
                }
            },
            "recur.lint(schedule, timezone, starts_at) says why, and how to write it instead.",
        );
    }
    if runs_at_once(action, now) {
        limited(
            || {
                let schedule = action.definition.schedule();
                format!(
                    "action \"{name}\" runs for the first time now: \"{schedule}\" is counted from starts_at"
                )
            },
            "Give starts_at for a first run at another time.",
        );
    }
}

/// Says that runs of an action that is given its first context may still overlap: the default was chosen without one.
pub fn of_change(before: &Action<Jsonb>, after: &Action<Jsonb>, changes: &Changes<Jsonb>) {
    let is_first = before.context.is_none() && after.context.is_some();
    let allows = after.definition.get(Column::Overlap).as_text() == Some(OVERLAP_WITHOUT_CONTEXT);
    if is_first && allows && changes.get(Column::Overlap).is_none() {
        let name = after.definition.name();
        limited(
            || format!("action \"{name}\" has a context now, and its overlap policy stays allow"),
            "Set overlap to skip, the default of actions with a context, unless its runs may work side by side.",
        );
    }
}

fn limited(message: impl Fn() -> String, hint: &'static str) {
    thread_local! {
        static SAID: PerStatement = const { PerStatement::new() };
    }
    match SAID.with(PerStatement::count) {
        0..MOST_IN_A_STATEMENT => notice(message(), Some(hint)),
        MOST_IN_A_STATEMENT => notice(
            "more of the actions of this statement run late, fall silent or run at once".to_owned(),
            None,
        ),
        _ => {}
    }
}
