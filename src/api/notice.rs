//! What triggers and the install script tell the workers, and functions those who listen.

use crate::dispatch::announce;
use crate::dispatch::later::Announced;
use crate::dispatch::store::Notifications;
use crate::pg::error::OrRaise;
use crate::pg::time;
use crate::{shared, wake};
use pgrx::datum::{TimestampWithTimeZone, Uuid};
use pgrx::prelude::*;
use pgrx::{direct_function_call, pg_sys};

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

/// `recur._announce_one(…)`: tells of a dispatch that is available, as the dispatcher does.
#[allow(clippy::too_many_arguments)]
#[pg_extern(sql = false)]
fn announce_one(
    id: Option<Uuid>,
    action_id: Option<Uuid>,
    scheduled_at: Option<TimestampWithTimeZone>,
    namespace: Option<String>,
    tenant: Option<String>,
    provider: Option<String>,
    action_type: Option<String>,
    notify_channel: Option<String>,
) -> Option<bool> {
    let plain = |id: Uuid| uuid::Uuid::from_bytes(*id.as_bytes());
    let dispatch = Announced {
        id: plain(id?),
        action: action_id.map(plain),
        scheduled_at: time::instant("scheduled_at", scheduled_at?).or_raise(),
        namespace: namespace?,
        tenant: tenant?,
        provider: provider?,
        action_type: action_type?,
        channel: notify_channel,
    };
    let Notifications { channels, payloads } = announce::messages([dispatch]);
    for (channel, payload) in channels.into_iter().zip(payloads) {
        let arguments = [channel.into_datum(), payload.into_datum()];
        unsafe { direct_function_call::<()>(pg_sys::pg_notify, &arguments) };
    }
    Some(true)
}
