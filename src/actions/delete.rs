//! Deleting an action. Everything here runs as the engine.

use super::author::{Author, Summary};
use super::identity::Identity;
use super::store;
use crate::pg::error::SqlError;
use crate::queue::overlap;
use recur_core::action;
use uuid::Uuid;

const REASON: &str = "the action was deleted";

/// Deletes an action and returns its last state; None if the author sees no such action.
pub fn delete(author: &Author, id: Uuid) -> Result<Option<Summary>, SqlError> {
    let Some(locked) = author.lock(id, false) else {
        return Ok(None);
    };
    // In the order of a report, which locks a dispatch, then progress, then, for a context, the definition.
    let mut cancelled = overlap::cancel_pending(id, REASON, author.actor());
    store::lock_progress(id);
    store::delete(id);
    // A concurrent recur.trigger holds the definition until it commits: its dispatch is visible by now.
    cancelled += overlap::cancel_pending(id, REASON, author.actor());
    let deleted = action::delete(&locked.action, cancelled as i64);
    let owner_id = locked.stored.owner_id();
    if deleted.promotes_duplicate {
        Identity::of(&locked.action.definition, owner_id).promote_duplicate()?;
    }
    let name = locked.action.definition.name();
    author.record(id, owner_id, name, &[deleted.event]);
    Ok(Some(Summary::of(id, &locked.action)))
}
