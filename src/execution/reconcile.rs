//! What executors have left behind, and what they are to stop. Everything here runs as the engine.

use crate::commands::armed::Armed;
use crate::pg;
use crate::pg::query::{pg_uuids, queries};
use crate::pg::time;
use crate::runtime::shared::executors::{self, Attempt, Interrupt};
use chrono::{DateTime, Utc};
use std::collections::HashSet;

queries! {
    OWNERS_WAITING = "execution/queries/owners_waiting.sql" (INT4ARRAYOID, TIMESTAMPTZOID, INT8OID);
    ORPHANS = "execution/queries/orphans.sql" ();
    END_ORPHANS = "execution/queries/end_orphans.sql" (UUIDARRAYOID, INT4ARRAYOID);
}

/// Ends the leases of attempts whose executor is gone, and returns how many. Stops those that are cancelled.
pub fn look_after_runs() -> usize {
    let running = ORPHANS.with(|query| {
        query.rows(&[], |row| {
            let attempt = Attempt {
                dispatch: row.uuid(1),
                number: row.required(2),
            };
            (attempt, row.required::<bool>(3))
        })
    });
    if running.is_empty() {
        return 0;
    }
    executors::signal_overdue(pg::my_database());
    // After the rows: whatever is committed by then is in a slot, or over.
    let alive: HashSet<Attempt> = executors::attempts_of(pg::my_database())
        .into_iter()
        .collect();
    for (attempt, _) in running.iter().filter(|(_, is_cancelled)| *is_cancelled) {
        executors::interrupt(*attempt, Interrupt::Cancel);
    }
    let gone: Vec<Attempt> = running
        .into_iter()
        .map(|(attempt, _)| attempt)
        .filter(|attempt| !alive.contains(attempt))
        .collect();
    if gone.is_empty() {
        return 0;
    }
    let numbers: Vec<i32> = gone.iter().map(|attempt| attempt.number).collect();
    let arguments = [
        pg_uuids(gone.iter().map(|attempt| attempt.dispatch)).into(),
        numbers.into(),
    ];
    END_ORPHANS.with(|query| query.execute(&arguments))
}

/// An owner with something to run.
pub struct Waiting {
    pub armed: Armed,
    /// How many dispatches there are, counted as far as there can be executors.
    pub dispatches: usize,
}

/// The armed owners, of these, with something to run now; those that wait longest come first.
pub fn waiting(owners: &[Armed], now: DateTime<Utc>) -> Vec<Waiting> {
    if owners.is_empty() {
        return Vec::new();
    }
    let ids: Vec<i32> = owners.iter().map(|armed| armed.owner_id).collect();
    let most = i64::try_from(executors::MAX_EXECUTORS).unwrap_or(i64::MAX);
    let arguments = [ids.into(), time::timestamptz(now).into(), most.into()];
    let found = OWNERS_WAITING.with(|query| {
        query.rows(&arguments, |row| {
            (row.required::<i32>(1), row.required::<i64>(2))
        })
    });
    let waiting = |(id, dispatches): (i32, i64)| {
        let armed = owners.iter().find(|armed| armed.owner_id == id).copied()?;
        let dispatches = usize::try_from(dispatches).unwrap_or_default();
        Some(Waiting { armed, dispatches })
    };
    found.into_iter().filter_map(waiting).collect()
}
