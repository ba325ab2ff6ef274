//! Cancels dispatches because another one of their action is due or triggered, or because the action is deleted. Runs
//! as the engine.

use super::announce;
use super::finish::{self, End};
use crate::access::Actor;
use crate::pg::query::{pg_uuid, pg_uuids, queries};
use crate::pg::time;
use chrono::{DateTime, Utc};
use uuid::Uuid;

queries! {
    LOCK_PENDING = "queue/queries/lock_pending_of_actions.sql" (UUIDOID);
    LOCK_FREE_PENDING = "queue/queries/lock_free_pending_of_actions.sql" (UUIDARRAYOID, INT4OID, TIMESTAMPTZOID);
    REQUEST_CANCEL = "queue/queries/request_cancel_of_actions.sql" (UUIDARRAYOID);
}

/// About this many dispatches are cancelled in one batch of the dispatcher: other actions that are due wait for it, and
/// a million took a minute.
const MOST_CANCELLED: usize = 10_000;
/// Of each action at least this many, however many actions cancel at once.
const LEAST_OF_ACTION: usize = 10;

/// Cancels the pending dispatches of these actions and asks the running ones to stop. A dispatch that a consumer is
/// about to claim or to report on is left alone: the dispatcher waits for no lock. What is too much for one batch is
/// left to the next occurrence. So are dispatches ahead of their time.
pub fn cancel_previous(actions: Vec<Uuid>, now: DateTime<Utc>, reason: &str, actor: &Actor) {
    if actions.is_empty() {
        return;
    }
    let of_each = (MOST_CANCELLED / actions.len()).max(LEAST_OF_ACTION) as i32;
    let actions = pg_uuids(actions);
    let now = time::timestamptz(now);
    let arguments = [actions.clone().into(), of_each.into(), now.into()];
    let pending = LOCK_FREE_PENDING.with(|query| query.rows(&arguments, |row| row.uuid(1)));
    cancel(&pending, reason, actor);
    REQUEST_CANCEL.with(|query| query.execute(&[actions.into()]));
    announce::wake_executors();
}

/// Cancels the pending dispatches of an action, and returns how many.
pub fn cancel_pending(action: Uuid, reason: &str, actor: &Actor) -> usize {
    let arguments = [pg_uuid(action).into()];
    let pending = LOCK_PENDING.with(|query| query.rows(&arguments, |row| row.uuid(1)));
    cancel(&pending, reason, actor);
    pending.len()
}

fn cancel(dispatches: &[Uuid], reason: &str, actor: &Actor) {
    let dispatches: Vec<_> = dispatches.iter().map(|id| (*id, Some(reason))).collect();
    finish::end_locked(&dispatches, End::Cancelled, actor);
}
