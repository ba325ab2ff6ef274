//! What triggers and the install script tell the workers.

use crate::{shared, wake};
use pgrx::prelude::*;

/// Trigger on `recur.timers`: whoever changes a timer wakes the dispatcher when he commits.
#[pg_trigger(sql = false)]
fn timers_changed<'a>(
    _trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, PgTriggerError> {
    wake::dispatchers_on_commit();
    Ok(None)
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
