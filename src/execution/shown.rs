//! What people see of executors.

use crate::pg;
use crate::pg::query::pg_uuid;
use crate::pg::time;
use crate::runtime::settings;
use crate::runtime::shared::{self, executors};
use pgrx::datum::{TimestampWithTimeZone, Uuid as PgUuid};
use pgrx::iter::TableIterator;
use pgrx::{name, prelude::*};

/// `recur_internal.interrupted_runs()`.
#[pg_extern(sql = false)]
fn interrupted_runs() -> TableIterator<
    'static,
    (
        name!(pid, Option<i32>),
        name!(dispatch_id, PgUuid),
        name!(since, TimestampWithTimeZone),
    ),
> {
    let all = match shared::available() {
        true => executors::executors(),
        false => Vec::new(),
    };
    let of_database = all
        .into_iter()
        .filter(|one| one.post.database == pg::my_database());
    let rows = of_database.filter_map(|one| {
        let since = time::from_micros(one.overdue_since?)?;
        Some((
            one.pid,
            pg_uuid(one.attempt?.dispatch),
            time::timestamptz(since),
        ))
    });
    TableIterator::new(rows.collect::<Vec<_>>())
}

/// `recur_internal.executor_slots()`.
#[pg_extern(sql = false)]
fn executor_slots() -> i32 {
    let slots = match shared::available() {
        true => settings::executors().min(settings::executor_slots()),
        false => 0,
    };
    i32::try_from(slots).unwrap_or(i32::MAX)
}
