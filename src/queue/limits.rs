//! How many dispatches people and programs may have pending. Everything here runs as the engine.
//!
//! To count them for each new one would cost more than the insert. So a session counts now and then, and in between
//! makes at most an eighth of what was left. One session alone never exceeds the limit; each of several may exceed it
//! by that eighth.

use crate::pg::error::SqlError;
use crate::pg::query::queries;
use crate::runtime::{clock, settings};
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::prelude::*;
use std::cell::Cell;

queries! {
    COUNT_PENDING = "queue/queries/count_pending.sql" (INT4OID, INT8OID);
}

/// What others have enqueued since is not known for longer than this.
const COUNTED_AGAIN_AFTER: TimeDelta = TimeDelta::seconds(1);

/// How many more an owner may make before they are counted again.
#[derive(Clone, Copy, Default)]
struct Allowance {
    owner_id: i32,
    limit: i64,
    left: i64,
    counted_at: DateTime<Utc>,
}

thread_local! {
    static ALLOWANCE: Cell<Option<Allowance>> = const { Cell::new(None) };
}

/// Raises an error if the owner has as many pending dispatches as it may have.
pub fn check_pending(owner_id: i32) -> Result<(), SqlError> {
    let limit = settings::max_pending_per_owner();
    if limit == 0 {
        return Ok(());
    }
    let now = clock::now();
    let is_current = |one: &Allowance| {
        let age = now - one.counted_at;
        let is_recent = age >= TimeDelta::zero() && age < COUNTED_AGAIN_AFTER;
        one.owner_id == owner_id && one.limit == limit && one.left > 0 && is_recent
    };
    if let Some(allowance) = ALLOWANCE.get().filter(is_current) {
        ALLOWANCE.set(Some(Allowance {
            left: allowance.left - 1,
            ..allowance
        }));
        return Ok(());
    }
    let arguments = [owner_id.into(), limit.into()];
    let pending: i64 = COUNT_PENDING
        .with(|query| query.row(&arguments, |row| row.required(1)))
        .unwrap_or_default();
    if pending >= limit {
        let code = PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED;
        let message =
            format!("the owner has all of the {limit} pending dispatches that it may have");
        return Err(SqlError::new(code, message)
            .with_hint("Let consumers catch up, or raise recur.max_pending_per_owner."));
    }
    ALLOWANCE.set(Some(Allowance {
        owner_id,
        limit,
        left: (limit - pending) / 8,
        counted_at: now,
    }));
    Ok(())
}
