//! Who may write what the database runs.

use super::armed::{self, Armed};
use crate::access;
use crate::pg::error::SqlError;
use crate::pg::{catalog, compat};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// What an owner runs, it runs with all of its rights: only a role that could SET ROLE to the owner writes it, and only
/// with the level for it.
pub fn check_author(writer: pg_sys::Oid, owner_id: i32) -> Result<(), SqlError> {
    let denied = |message| SqlError::new(PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE, message);
    if !access::may_run_sql(writer) {
        let name = catalog::role_name(writer).unwrap_or_default();
        let message = format!("permission denied: {name} may not make the database run SQL");
        let hint = "An admin, or the owner of the database, grants the level with recur.grant_access(role, 'sql').";
        return Err(denied(message).with_hint(hint));
    }
    let owner = access::name_of(owner_id);
    let Some(role) = access::role_of(owner_id).filter(|role| compat::can_set_role(writer, *role))
    else {
        let name = catalog::role_name(writer).unwrap_or_default();
        let message = format!("permission denied: {name} may not SET ROLE to {owner}");
        return Err(denied(message).with_hint(
            "SQL runs with all rights of its owner: only a member of that role may write it.",
        ));
    };
    check_connection(role, &owner)
}

/// An executor connects as the owner.
fn check_connection(role: pg_sys::Oid, owner: &str) -> Result<(), SqlError> {
    let refused = |problem: &str| {
        let code = PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
        SqlError::new(code, format!("the SQL of {owner} can't run: {problem}"))
    };
    if compat::NEEDS_LOGIN && !compat::can_login(role) {
        return Err(refused("the role has no LOGIN").with_hint(format!(
            "ALTER ROLE {owner} LOGIN; without a password no client logs in as it. PostgreSQL 17 needs no LOGIN."
        )));
    }
    if !compat::can_connect(role) {
        let database = catalog::database_name(crate::pg::my_database()).unwrap_or_default();
        return Err(refused("the role may not connect to this database")
            .with_hint(format!("GRANT CONNECT ON DATABASE {database} TO {owner};")));
    }
    Ok(())
}

/// Before something is written that the database runs: the first time, arms its owner. As the engine.
///
/// An owner of whom there is something already, without being armed, stays as it is: it was restored, or inserted by
/// hand.
pub fn prepare(owner_id: i32, writer: &str) {
    let Some(role) = access::role_of(owner_id) else {
        return;
    };
    let this = Armed { owner_id, role };
    if armed::is_armed(this) {
        return;
    }
    armed::lock();
    if !armed::has_something_to_run(owner_id) {
        armed::arm(this, writer);
        return;
    }
    let owner = access::name_of(owner_id);
    let code = PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
    SqlError::new(
        code,
        format!("the SQL of {owner} does not run until it is armed"),
    )
    .with_detail(
        "Some of it was restored, or inserted by hand, so that anybody may have written it.",
    )
    .with_hint(
        "Look through recur.recurring_actions, recur.dispatches and recur.handlers, then call \
             recur.arm_sql().",
    )
    .warn();
}
