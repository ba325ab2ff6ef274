//! Timers set by hand, as after a clock that was set back, or by an operator.

use crate::session::Session;

/// Lets actions be due at this instant, which is SQL; `which` is a condition on `t`, a row of the timers, or empty.
#[track_caller]
pub fn set_due(session: &mut Session, instant: &str, which: &str) {
    session.batch(&update(instant, which));
}

/// The statement that does it.
pub fn update(instant: &str, which: &str) -> String {
    let which = if which.is_empty() { "true" } else { which };
    format!(
        "UPDATE recur_internal.timers AS t SET next_run_at = {instant}, due_at = {instant} WHERE {which}"
    )
}

/// A condition for the timer of the action of this name.
pub fn of_action(name: &str) -> String {
    format!("t.action_id = (SELECT id FROM recur_internal.definitions WHERE name = '{name}')")
}
