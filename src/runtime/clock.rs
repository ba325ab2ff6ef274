//! The time that pg_recur goes by. A test database has a clock of its own; everywhere else it is the server's.

use super::cached_table::CachedTable;
use crate::pg::catalog;
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::query::queries;
use crate::pg::time;
use chrono::{DateTime, Utc};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// The time that a test database has.
#[derive(Clone, Copy)]
enum TestClock {
    /// Stands still.
    At(pg_sys::TimestampTz),
    /// Goes, this many microseconds ahead of the server's.
    Ahead(i64),
}

queries! {
    READ_TEST_CLOCK = "install/queries/test_clock.sql" ();
}

thread_local! {
    static TEST_CLOCK: CachedTable<Option<TestClock>> = const { CachedTable::new(c"test_clock", read) };
}

/// Now. Needs a transaction.
pub fn now() -> DateTime<Utc> {
    time::from_micros(now_micros()).unwrap_or(DateTime::UNIX_EPOCH)
}

/// Does the database have a clock of its own? Needs a transaction.
pub fn is_for_tests() -> bool {
    test_clock().is_some()
}

fn now_micros() -> pg_sys::TimestampTz {
    match test_clock() {
        None => time::now_micros(),
        Some(TestClock::At(at)) => at,
        Some(TestClock::Ahead(micros)) => time::now_micros().saturating_add(micros),
    }
}

fn test_clock() -> Option<TestClock> {
    TEST_CLOCK.with(CachedTable::get)
}

fn read() -> Option<TestClock> {
    let rows = READ_TEST_CLOCK.with(|query| {
        query.latest_rows(&[], |row| match row.get::<TimestampWithTimeZone>(1) {
            Some(at) => TestClock::At(at.into()),
            None => TestClock::Ahead(row.required(2)),
        })
    });
    rows.into_iter().next()
}

/// `recur.clock()`.
#[pg_extern(sql = false)]
fn clock() -> TimestampWithTimeZone {
    time::raw_timestamptz(now_micros())
}

/// `recur_internal.settable(at)`: what the clock can be set to.
#[pg_extern(sql = false)]
fn settable(at: Option<TimestampWithTimeZone>) -> Option<TimestampWithTimeZone> {
    if !is_for_tests() {
        not_for_tests().raise();
    }
    at.inspect(|at| {
        time::instant("at", *at).or_raise();
    })
}

fn not_for_tests() -> SqlError {
    // SAFETY: a variable of this process, set when it connects.
    let database = unsafe { pg_sys::MyDatabaseId };
    let name = catalog::database_name(database).unwrap_or_default();
    SqlError::new(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("database \"{name}\" is not a test database: its clock can't be set"),
    )
    .with_hint(
        "recur.mark_test_database() makes a new database one, before its first action is created.",
    )
}
