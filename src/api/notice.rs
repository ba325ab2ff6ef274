//! What triggers and the install script tell the workers.

use crate::{shared, wake};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Row trigger on `recur.timers`: whoever sets a timer tells the dispatcher when he commits.
#[pg_trigger(sql = false)]
fn timers_changed<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, PgTriggerError> {
    if let Some(due_at) = new_instant(trigger, "due_at") {
        wake::due_on_commit(due_at);
    }
    Ok(None)
}

/// Row trigger on `recur.live_dispatches`: what becomes available later is announced then.
#[pg_trigger(sql = false)]
fn available_later<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, PgTriggerError> {
    if let Some(available_at) = new_instant(trigger, "available_at") {
        wake::available_on_commit(available_at);
    }
    Ok(None)
}

fn new_instant(trigger: &PgTrigger, column: &str) -> Option<pg_sys::TimestampTz> {
    let row = trigger.new()?;
    let value = row.get_by_name::<TimestampWithTimeZone>(column).ok()??;
    Some(value.into())
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
