//! The history that reports are written to.

use crate::dispatch::query::queries;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::Cell;

queries! {
    HISTORY_PARTITION = "history_partition.sql" ();
}

/// `recur._history_partition()`: asked for by every report, and changed about once a day.
#[pg_extern(sql = false)]
fn history_partition() -> i16 {
    const FRESH_MICROS: i64 = 100_000;
    thread_local! {
        static LAST: Cell<Option<(pg_sys::TimestampTz, i16)>> = const { Cell::new(None) };
    }
    let now = unsafe { pg_sys::GetCurrentTimestamp() };
    if let Some((at, partition)) = LAST.get()
        && (0..FRESH_MICROS).contains(&now.saturating_sub(at))
    {
        return partition;
    }
    let rows = HISTORY_PARTITION.with(|query| query.rows(&[], |row| row.get::<i16>(1)));
    let rows = rows.unwrap_or_else(|error| pgrx::error!("pg_recur: {error}"));
    let partition = rows.into_iter().flatten().next().unwrap_or(0);
    LAST.set(Some((now, partition)));
    partition
}
