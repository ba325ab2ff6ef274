//! What triggers and the install script tell the workers.

use crate::{shared, wake};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;

/// Row trigger on `recur.timers`: whoever sets a timer tells the dispatcher when he commits.
#[pg_trigger(sql = false)]
fn timers_changed<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, PgTriggerError> {
    let due_at = trigger
        .new()
        .and_then(|row| row.get_by_name::<TimestampWithTimeZone>("due_at").ok())
        .flatten();
    if let Some(due_at) = due_at {
        wake::dispatchers_on_commit(due_at.into());
    }
    Ok(None)
}

/// Statement or row trigger: the workers of this database shall look when the transaction commits.
#[pg_trigger(sql = false)]
fn wake_workers<'a>(
    _trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, PgTriggerError> {
    wake::workers_on_commit();
    Ok(None)
}

/// `recur._is_dispatching()`.
#[pg_extern(sql = false)]
fn is_dispatching() -> bool {
    wake::Dispatching::is_under_way()
}

/// Called by the install script: the launcher starts a dispatcher as soon as CREATE EXTENSION commits.
#[pg_extern(sql = false)]
fn extension_created() {
    if shared::available() {
        wake::look_on_commit();
        return;
    }
    pgrx::ereport!(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "pg_recur is not preloaded: nothing fires by itself",
        "Add pg_recur to shared_preload_libraries and restart the server, or call recur.tick() yourself."
    );
}
