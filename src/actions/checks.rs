//! Arguments of functions in SQL and PL/pgSQL, checked before these call others: a caller has no use for the calls
//! inside, which an error would list as its context.

use crate::pg::error::{OrRaise, SqlError, given};
use crate::pg::time;
use pgrx::prelude::*;

/// `recur_internal.checked_limit(limit)`.
#[pg_extern(sql = false)]
fn checked_limit(limit: Option<i32>) -> i32 {
    limit
        .filter(|limit| *limit >= 1)
        .ok_or_else(|| {
            let shown = limit.map_or_else(|| "NULL".to_owned(), |limit| limit.to_string());
            SqlError::invalid_argument("limit", &shown, "must be at least 1")
        })
        .or_raise()
}

/// `recur_internal.checked_instant(argument, instant)`.
#[pg_extern(sql = false)]
fn checked_instant(
    argument: Option<&str>,
    instant: Option<TimestampWithTimeZone>,
) -> TimestampWithTimeZone {
    let argument = argument.unwrap_or_default();
    let instant = given(argument, instant).or_raise();
    time::instant(argument, instant).or_raise();
    instant
}
