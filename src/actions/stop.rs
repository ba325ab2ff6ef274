//! Actions that stop because their owner is gone. Runs as the engine.

use super::author::Author;
use crate::pg::query::queries;
use recur_core::action;

queries! {
    COMMANDS_OF_OWNER = "actions/queries/commands_of_owner.sql" (INT4OID);
}

const REASON: &str = "the role of its owner was dropped";

/// Pauses the SQL actions of an owner, each with an event.
pub fn stop_commands(owner_id: i32) {
    let ids = COMMANDS_OF_OWNER.with(|query| query.rows(&[owner_id.into()], |row| row.uuid(1)));
    let author = Author::worker();
    for id in ids {
        let Some(locked) = author.lock(id, false) else {
            continue;
        };
        // It may have been paused, or have ended, meanwhile.
        if let Ok(changes) = action::pause(&locked.action, Some(REASON)) {
            let _ = author.change_in_bulk(locked, &changes);
        }
    }
}
