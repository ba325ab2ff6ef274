//! Taking the next dispatch of an owner. Everything here runs as the engine.

use crate::commands::armed::{self, Armed};
use crate::commands::handlers::{self, Call};
use crate::pg;
use crate::pg::jsonb::Jsonb;
use crate::pg::query::{Row, queries};
use crate::pg::time;
use crate::runtime::clock;
use crate::runtime::shared::executors::{self, Attempt};
use recur_core::action::Json;

queries! {
    CLAIM = "execution/queries/claim.sql" (TIMESTAMPTZOID, TEXTOID, INT4OID, OIDOID);
}

/// A dispatch that this process is to run. It outlives the transaction that claimed it.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub attempt: Attempt,
    pub owner_id: i32,
    pub provider: String,
    pub action_type: String,
    pub payload: String,
    pub context: Option<String>,
    /// What the action, or the dispatch, is called.
    pub name: Option<String>,
    /// The dispatch as a handler sees it.
    pub shown: String,
    /// The function that runs it, and how long the call may take; None for a command.
    pub handler: Option<Call>,
}

/// Claims the next dispatch of the owner, if it is armed. The slot knows of it before the claim is committed.
pub fn next(slot: usize, owner: Armed) -> Option<Claimed> {
    let consumer = format!("executor {}", pg::my_pid());
    let arguments = [
        time::timestamptz(clock::now()).into(),
        consumer.as_str().into(),
        owner.owner_id.into(),
        owner.role.into(),
    ];
    let read = |row: &Row| read(row, owner.owner_id);
    let mut claimed = CLAIM.with(|query| query.row(&arguments, read))?;
    // The handlers were read after the dispatch: one may have been inserted by hand in between.
    if claimed.handler.is_some() && !armed::is_armed_now(owner) {
        claimed.handler = None;
    }
    executors::note_claimed(slot, claimed.attempt);
    Some(claimed)
}

fn read(row: &Row, owner_id: i32) -> Claimed {
    let action_type: String = row.required(4);
    let text = |ordinal| row.get::<Jsonb>(ordinal).map(|json| json.text());
    Claimed {
        attempt: Attempt {
            dispatch: row.uuid(1),
            number: row.required(2),
        },
        owner_id,
        provider: row.required(3),
        handler: handlers::find(owner_id, &action_type),
        action_type,
        payload: text(5).unwrap_or_default(),
        context: text(6),
        name: row.get(7),
        shown: text(8).unwrap_or_default(),
    }
}
