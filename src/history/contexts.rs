//! What an action carries from run to run, with the versions before.

use crate::pg::jsonb::Jsonb;
use crate::pg::query::{pg_uuid, queries};
use uuid::Uuid;

queries! {
    SET_CONTEXT = "history/queries/set_context.sql" (UUIDOID, JSONBOID, INT4OID, UUIDOID, TEXTOID);
}

/// A new context for an action.
pub struct NewContext<'a> {
    pub action: Uuid,
    pub context: Option<Jsonb>,
    /// The version that the writer has seen: an optimistic lock.
    pub expected_version: Option<i32>,
    /// The dispatch that left it, if a run did.
    pub dispatch: Option<Uuid>,
    pub actor: &'a str,
}

/// The action has another version than the one that was expected, and keeps it.
pub struct VersionConflict {
    pub found: i32,
}

/// Stores a context, as the engine. An action that was deleted meanwhile has no use for one.
pub fn set(new: NewContext) -> Result<(), VersionConflict> {
    let arguments = [
        pg_uuid(new.action).into(),
        new.context.into(),
        new.expected_version.into(),
        new.dispatch.map(pg_uuid).into(),
        new.actor.into(),
    ];
    let found = SET_CONTEXT.with(|query| query.row(&arguments, |row| row.required::<i32>(1)));
    match (found, new.expected_version) {
        (Some(found), Some(expected)) if found != expected => Err(VersionConflict { found }),
        _ => Ok(()),
    }
}
