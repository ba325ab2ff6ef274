//! Dispatches that no schedule asked for, of actions that the caller sees.
//!
//! Whether he sees them is asked as the caller, whoever that is: a login role, a role that it has changed to, or the owner
//! of a function that runs as its owner. The work is done as the owner of the tables.

use crate::pg::role;
use pgrx::JsonB;
use pgrx::datum::{DatumWithOid, TimestampWithTimeZone, Uuid};
use pgrx::prelude::*;

/// `recur._dispatch_by_hand(action_id, payload)`.
#[pg_extern(sql = false)]
fn dispatch_by_hand(action_id: Option<Uuid>, payload: Option<JsonB>) -> Option<Uuid> {
    let action_id = action_id.filter(|id| sees(*id))?;
    as_owner(
        "SELECT recur._insert_by_hand($1, 'manual', clock_timestamp(), $2)",
        &[action_id.into(), payload.into()],
    )
}

/// `recur._dispatch_missing(action_id, "from", until, "limit")`.
#[pg_extern(sql = false)]
fn dispatch_missing(
    action_id: Option<Uuid>,
    from: Option<TimestampWithTimeZone>,
    until: Option<TimestampWithTimeZone>,
    limit: Option<i32>,
) -> Option<Vec<Uuid>> {
    let action_id = action_id.filter(|id| sees(*id))?;
    as_owner(
        "SELECT recur._backfill($1, $2, $3, $4)",
        &[action_id.into(), from?.into(), until?.into(), limit?.into()],
    )
}

/// Row-level security answers.
fn sees(action_id: Uuid) -> bool {
    let query = "SELECT EXISTS (SELECT FROM recur.definitions AS d WHERE d.id = $1)";
    let answer = Spi::get_one_with_args::<bool>(query, &[action_id.into()]);
    matches!(answer, Ok(Some(true)))
}

fn as_owner<T: FromDatum + IntoDatum>(query: &str, arguments: &[DatumWithOid]) -> Option<T> {
    let answer = role::as_owner(|| Spi::get_one_with_args::<T>(query, arguments));
    match answer {
        Ok(answer) => answer,
        Err(error) => pgrx::error!("pg_recur: {error}"),
    }
}
