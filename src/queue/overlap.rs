//! Cancels dispatches because the next occurrence of their action is due, or because the action is deleted. Runs as the
//! engine.

use super::finish::{self, End};
use crate::pg::query::{pg_uuids, queries};
use uuid::Uuid;

queries! {
    LOCK_PENDING = "queue/queries/lock_pending_of_actions.sql" {skip: ""} (UUIDARRAYOID);
    LOCK_FREE_PENDING = "queue/queries/lock_pending_of_actions.sql" {skip: "SKIP LOCKED"} (UUIDARRAYOID);
    REQUEST_CANCEL = "queue/queries/request_cancel_of_actions.sql" (UUIDARRAYOID);
}

/// Cancels the pending dispatches of these actions and asks the running ones to stop. A dispatch that a consumer is
/// about to claim or to report on is left alone: the dispatcher waits for no lock.
pub fn cancel_previous(actions: Vec<Uuid>) {
    if actions.is_empty() {
        return;
    }
    let actions = pg_uuids(actions);
    let arguments = [actions.clone().into()];
    let pending = LOCK_FREE_PENDING.with(|query| query.rows(&arguments, |row| row.uuid(1)));
    cancel(&pending, "the next occurrence was due");
    REQUEST_CANCEL.with(|query| query.execute(&[actions.into()]));
}

/// Cancels the pending dispatches of an action, and returns how many.
pub fn cancel_pending(action: Uuid, reason: &str) -> usize {
    let arguments = [pg_uuids([action]).into()];
    let pending = LOCK_PENDING.with(|query| query.rows(&arguments, |row| row.uuid(1)));
    cancel(&pending, reason);
    pending.len()
}

fn cancel(dispatches: &[Uuid], reason: &str) {
    let dispatches: Vec<_> = dispatches.iter().map(|id| (*id, Some(reason))).collect();
    finish::end_locked(&dispatches, End::Cancelled);
}
