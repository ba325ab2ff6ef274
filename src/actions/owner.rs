//! Another owner for actions: `update` of `owner`, and `recur.reassign_owner`.
//!
//! What an action does, it does as its owner. So only a role that may act as the new owner, by SET ROLE, can give an
//! action to it; and only a role that may act as the present owner, or an admin, can take it away.

use super::author::{Author, Locked};
use super::identity::Identity;
use super::quota;
use crate::access;
use crate::commands::handlers;
use crate::history::events::{self, Change};
use crate::history::lines;
use crate::pg::error::{OrRaise, SqlError, abbreviated, given};
use crate::pg::jsonb::Jsonb;
use crate::pg::planner::PlannerPins;
use crate::pg::query::{pg_uuid, queries};
use crate::pg::srf::ResultSet;
use crate::pg::{catalog, compat, subtransaction};
use crate::runtime::engine;
use pgrx::check_for_interrupts;
use pgrx::pg_sys::{self, FunctionCallInfo};
use pgrx::prelude::*;
use recur_core::action::{EventKind, Invalid, Json};
use std::ffi::CString;

queries! {
    SET_OWNER = "actions/queries/set_owner.sql" (UUIDOID, INT4OID);
    ACTIONS_OF_OWNER = "actions/queries/actions_of_owner.sql" (INT4OID);
    REASSIGN_JOURNEYS = "actions/queries/reassign_journeys.sql" (INT4OID, INT4OID);
    REASSIGN_PENDING = "actions/queries/reassign_pending.sql" (INT4OID, INT4OID);
    REASSIGN_PENDING_OF_ACTION = "actions/queries/reassign_pending_of_action.sql" (UUIDOID, INT4OID);
}

const UNIQUE_VIOLATION: &str = "23505";

/// An owner that the caller may give actions to, and whose actions it may take away.
pub struct NewOwner {
    id: i32,
    name: String,
    /// The names of the owners that the caller may not act as are refused, unless it is an admin.
    caller: pg_sys::Oid,
    is_admin: bool,
}

impl NewOwner {
    /// Looked up before the process acts as the engine.
    pub fn named(argument: &str, name: &str) -> Result<NewOwner, SqlError> {
        let caller = access::caller();
        let Some(role) = role_to_act_as(caller, name) else {
            return Err(refused(argument, name, caller)
                .with_hint("Give the name of a role that you may SET ROLE to."));
        };
        Ok(NewOwner {
            id: access::id_of_role(role),
            name: name.to_owned(),
            caller,
            is_admin: access::sees_all(),
        })
    }

    fn may_take_from(&self, owner: &str) -> Result<(), SqlError> {
        if self.is_admin || role_to_act_as(self.caller, owner).is_some() {
            return Ok(());
        }
        Err(refused("owner", owner, self.caller)
            .with_hint("Only members of both roles, who may SET ROLE to them, move an action."))
    }

    /// Gives an action to this owner; a journey belongs to its owner, and so do its actions. Runs as the engine.
    pub fn take_alone(&self, author: &Author, locked: &Locked) -> Result<(), SqlError> {
        let definition = &locked.action.definition;
        let journey = locked.action.journey.as_ref();
        if let Some(journey) = journey.filter(|_| locked.stored.owner_id() != self.id) {
            let (name, journey) = (definition.name(), &journey.name);
            let message = format!("action \"{name}\" runs journey \"{journey}\" of its owner");
            let code = PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
            return Err(SqlError::new(code, message).with_hint(
                "recur.reassign_owner moves all actions of an owner, with its journeys.",
            ));
        }
        self.take(author, locked).map(drop)
    }

    /// Takes an action with its pending dispatches, and returns the number of these.
    fn take(&self, author: &Author, locked: &Locked) -> Result<usize, SqlError> {
        self.may_take_from(locked.stored.owner().unwrap_or_default())?;
        let before = locked.stored.owner_id();
        if before == self.id {
            return Ok(0);
        }
        let definition = &locked.action.definition;
        author.check_runnable(self.id, definition)?;
        let arguments = [pg_uuid(locked.id).into(), self.id.into()];
        let write = || SET_OWNER.with(|query| query.execute(&arguments));
        let written =
            subtransaction::attempt_unless(write, |failure| failure.sqlstate != UNIQUE_VIOLATION);
        written.map_err(|_| Invalid::is_taken(definition))?;
        if !locked.action.duplicate {
            Identity::of(definition, before).promote_duplicate()?;
        }
        quota::check(self.id, definition.tenant(), definition.subject())?;
        let dispatches = REASSIGN_PENDING_OF_ACTION.with(|query| query.execute(&arguments));
        let detail = serde_json::json!({
            "old": {"owner": locked.stored.owner()},
            "new": {"owner": self.name},
        });
        let change = Change {
            kind: EventKind::Updated,
            action: Some(locked.id),
            dispatch: None,
            owner_id: self.id,
            detail: Jsonb::from_text(&detail.to_string()),
        };
        events::record_changes(&[change], author.actor());
        lines::changed(
            EventKind::Updated,
            locked.id,
            definition.name(),
            author.actor(),
        );
        Ok(dispatches)
    }
}

fn role_to_act_as(caller: pg_sys::Oid, name: &str) -> Option<pg_sys::Oid> {
    let name = CString::new(name).ok()?;
    catalog::role(&name).filter(|role| compat::can_set_role(caller, *role))
}

fn refused(argument: &str, name: &str, caller: pg_sys::Oid) -> SqlError {
    let caller = catalog::role_name(caller).unwrap_or_default();
    let message = format!(
        "invalid {argument} \"{}\": {caller} may not SET ROLE to this role",
        abbreviated(name)
    );
    SqlError::new(PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE, message)
}

/// `recur.reassign_owner("from", "to")`: all actions and pending dispatches. An admin may name a role that was dropped.
#[pg_extern(sql = false)]
fn reassign_owner(from: Option<&str>, to: Option<&str>, call: FunctionCallInfo) {
    let from = given("from", from).or_raise();
    let to = given("to", to)
        .and_then(|to| NewOwner::named("to", to))
        .or_raise();
    to.may_take_from(from).or_raise();
    let owners = access::owner_ids_of(from);
    let author = Author::current();
    let result = ResultSet::begin(call);
    let _pins = PlannerPins::set();
    let (actions, dispatches) = engine::as_engine(|| reassign(&author, &owners, &to)).or_raise();
    result.put(&[actions.into(), dispatches.into()]);
}

fn reassign(author: &Author, from: &[i32], to: &NewOwner) -> Result<(i64, i64), SqlError> {
    let (mut actions, mut dispatches) = (0, 0);
    for owner in from.iter().copied().filter(|owner| *owner != to.id) {
        author.check_pending_commands(owner, to.id)?;
        let arguments = [owner.into(), to.id.into()];
        REASSIGN_JOURNEYS.with(|query| query.execute(&arguments));
        let ids = ACTIONS_OF_OWNER.with(|query| query.rows(&[owner.into()], |row| row.uuid(1)));
        for id in ids {
            check_for_interrupts!();
            // Another session may have deleted it, or given it away.
            let locked = author.lock(id, false);
            if let Some(locked) = locked.filter(|locked| locked.stored.owner_id() == owner) {
                dispatches += to.take(author, &locked)? as i64;
                actions += 1;
            }
        }
        // Those that were enqueued, and those of actions that were deleted.
        dispatches += REASSIGN_PENDING.with(|query| query.execute(&arguments)) as i64;
        // Handlers of the one owner do not run what belongs to the other.
        handlers::reflag(to.id);
    }
    Ok((actions, dispatches))
}
