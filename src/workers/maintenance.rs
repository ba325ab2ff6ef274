//! What may wait for locks or take its time, and so is no work for a dispatcher: the truncation of old history, the
//! names of roles that were renamed, and the removal of keys of requests. The first dispatcher of a database sees when
//! it is needed; the launcher starts a process for it, one at a time for the whole server, which exits when the work is
//! done.

use super::context::{Interruption, WorkerContext};
use super::task::warn_of;
use crate::access;
use crate::history::partition;
use crate::pg::lock_timeout::LockTimeout;
use crate::pg::time;
use crate::requests::keys;
use crate::runtime::shared::{self, Exit};
use chrono::{DateTime, Utc};
use pgrx::prelude::*;
use std::time::Duration;

/// The dispatcher looks again as often as this, and finds what has failed.
const AGAIN_IN: Duration = Duration::from_secs(60);
const LONGEST_LOCK_WAIT_MILLIS: i32 = 50;

/// Asks the launcher for a maintenance process if there is work for one. Called by a dispatcher.
pub fn request_if_needed(
    context: &mut WorkerContext,
    now: DateTime<Utc>,
) -> Result<(), Interruption> {
    let is_needed = context.transaction(c"pg_recur dispatcher", move || {
        let _timeout = LockTimeout::of_millis(LONGEST_LOCK_WAIT_MILLIS);
        partition::open_first(now);
        partition::is_next_due(now) || access::names_are_outdated() || keys::await_removal(now)
    })?;
    if is_needed {
        shared::request_maintenance(context.database());
    }
    Ok(())
}

/// Does the work, and exits.
pub fn serve(context: &mut WorkerContext) -> Exit {
    let opened = context.transaction(
        c"pg_recur maintenance",
        || partition::open_next(time::now()),
    );
    if let Ok(true) = opened {
        log!(
            "pg_recur maintenance: next history partition opened database={:?}",
            context.database_name
        );
    }
    let refreshed = context.transaction(c"pg_recur maintenance", access::refresh_names);
    let outcomes = [
        ("retention", opened.map(drop)),
        ("refresh of names", refreshed),
        ("removal of request keys", remove_request_keys(context)),
    ];
    for (work, outcome) in outcomes {
        if let Err(Interruption::Failed(failure)) = outcome {
            warn_of(work, context, &failure, AGAIN_IN);
        }
    }
    Exit::Asked
}

/// Step by step: each is a short transaction.
fn remove_request_keys(context: &mut WorkerContext) -> Result<(), Interruption> {
    let step = || keys::remove_forgotten(time::now());
    while context.transaction(c"pg_recur maintenance", step)? == keys::AT_ONCE {}
    Ok(())
}
