//! How many dispatches people and programs may have pending. Everything here runs as the engine.

use crate::pg::error::SqlError;
use crate::pg::query::queries;
use crate::runtime::allowance::Allowance;
use crate::runtime::settings;
use pgrx::prelude::*;

queries! {
    COUNT_PENDING = "queue/queries/count_pending.sql" (INT4OID, INT8OID);
}

thread_local! {
    static ALLOWANCE: Allowance = const { Allowance::new() };
}

/// Raises an error if the owner has as many pending dispatches as it may have.
pub fn check_pending(owner_id: i32) -> Result<(), SqlError> {
    let limit = settings::max_pending_per_owner();
    let count = || {
        let arguments = [owner_id.into(), limit.into()];
        let pending = COUNT_PENDING.with(|query| query.row(&arguments, |row| row.required(1)));
        pending.unwrap_or_default()
    };
    if ALLOWANCE.with(|allowance| allowance.take(owner_id, limit, count)) {
        return Ok(());
    }
    let code = PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED;
    let message = format!("the owner has all of the {limit} pending dispatches that it may have");
    Err(SqlError::new(code, message)
        .with_hint("Let consumers catch up, or raise recur.max_pending_per_owner."))
}
