//! The partition that history is written to.

use crate::pg::query::queries;
use crate::pg::{interval, time};
use crate::runtime::{engine, settings};
use chrono::{DateTime, Utc};
use pgrx::datum::Interval;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::Cell;

queries! {
    HISTORY_PARTITION = "history/queries/history_partition.sql" ();
    NEXT_PARTITION = "history/queries/next_partition.sql" (INTERVALOID, TIMESTAMPTZOID);
    OPEN_FIRST_PARTITION = "history/queries/open_first_partition.sql" (TIMESTAMPTZOID);
    OPEN_NEXT_PARTITION = "history/queries/open_next_partition.sql" (INTERVALOID, TIMESTAMPTZOID);
}

/// Every report asks for the partition, which changes about once a day: an answer may be this old.
const FRESH_MICROS: i64 = 100_000;

/// The partition that is written now.
pub fn current() -> i16 {
    thread_local! {
        static LAST: Cell<Option<(pg_sys::TimestampTz, i16)>> = const { Cell::new(None) };
    }
    let now = time::now_micros();
    if let Some((at, partition)) = LAST.get()
        && (0..FRESH_MICROS).contains(&now.saturating_sub(at))
    {
        return partition;
    }
    let read = HISTORY_PARTITION.with(|query| query.row(&[], |row| row.required::<i16>(1)));
    let partition = read.unwrap_or(0);
    LAST.set(Some((now, partition)));
    partition
}

/// `recur_internal.history_partition()`.
#[pg_extern(sql = false)]
fn history_partition() -> i16 {
    engine::as_engine(current)
}

/// `recur_internal.retention()`.
#[pg_extern(sql = false)]
fn retention() -> Interval {
    interval::from_parts(settings::retention())
}

/// Opens the first partition, where none has been opened yet.
pub fn open_first(now: DateTime<Utc>) {
    OPEN_FIRST_PARTITION.with(|query| query.execute(&[time::timestamptz(now).into()]));
}

/// Is it time to truncate and open the next partition?
pub fn is_next_due(now: DateTime<Utc>) -> bool {
    NEXT_PARTITION.with(|query| {
        let arguments = [retention().into(), time::timestamptz(now).into()];
        let next: Option<Option<i16>> = query.row(&arguments, |row| row.get(1));
        next.flatten().is_some()
    })
}

/// Truncates and opens the next partition if its time has come. True if it has.
pub fn open_next(now: DateTime<Utc>) -> bool {
    OPEN_NEXT_PARTITION.with(|query| {
        let arguments = [retention().into(), time::timestamptz(now).into()];
        query
            .row(&arguments, |row| row.required(1))
            .unwrap_or(false)
    })
}
