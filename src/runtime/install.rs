//! How the install script and a restore wake the workers.

use super::{engine, shared, wakeup};
use pgrx::prelude::*;

/// `recur_internal.extension_created()`: the launcher starts a dispatcher as soon as CREATE EXTENSION commits.
#[pg_extern(sql = false)]
fn extension_created() {
    if shared::available() {
        wakeup::look_on_commit();
        return;
    }
    pgrx::ereport!(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "pg_recur is not preloaded: nothing fires by itself",
        "Add pg_recur to shared_preload_libraries and restart the server, or call recur.tick() yourself."
    );
}

/// Statement trigger on `recur_internal.timers`: wakes the workers for rows that a restore, or a superuser by hand, has
/// written.
#[pg_trigger(sql = false)]
fn rows_restored<'a>(
    _trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, PgTriggerError> {
    if !engine::is_engine() {
        wakeup::anything_on_commit();
    }
    Ok(None)
}
