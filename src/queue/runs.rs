//! How many runs an action has had, where `max_runs` counts completed runs. Everything here runs as the engine.
//!
//! An unfinished dispatch may be completed, so it holds a place. A session that makes a dispatch locks the timer, and
//! then counts: completed and unfinished runs together never exceed `max_runs`.

use crate::access::Visible;
use crate::pg::error::SqlError;
use crate::pg::query::{pg_uuid, pg_uuids, queries};
use pgrx::prelude::*;
use std::collections::HashMap;
use uuid::Uuid;

/// An action with this many unfinished runs gets no more, whatever its `max_runs`: the dispatcher counts them at each
/// occurrence.
const MOST_UNFINISHED: i64 = 10_000;

queries! {
    COMPLETED_RUNS = "queue/queries/completed_runs.sql" (UUIDARRAYOID, INT8OID);
    MAX_COMPLETED = "queue/queries/max_completed.sql" (UUIDOID, INT4ARRAYOID);
    LOCK_COUNTED = "queue/queries/lock_counted.sql" (UUIDOID);
}

/// The runs of an action.
#[derive(Clone, Copy, Default)]
pub struct Runs {
    pub completed: i64,
    pub unfinished: i64,
}

impl Runs {
    /// The places that are taken: all that there can be, where the unfinished were not counted to their end.
    pub fn taken(self) -> i64 {
        match self.unfinished < MOST_UNFINISHED {
            true => self.completed + self.unfinished,
            false => self.completed.max(i32::MAX.into()),
        }
    }
}

/// The runs of these actions, whose timers the caller has locked.
pub fn count(actions: Vec<Uuid>) -> HashMap<Uuid, Runs> {
    if actions.is_empty() {
        return HashMap::new();
    }
    let rows = COMPLETED_RUNS.with(|query| {
        let arguments = [pg_uuids(actions).into(), MOST_UNFINISHED.into()];
        query.rows(&arguments, |row| {
            let runs = Runs {
                completed: row.required(2),
                unfinished: row.required(3),
            };
            (row.uuid(1), runs)
        })
    });
    rows.into_iter().collect()
}

/// Before a dispatch is made by hand: where completed runs count, locks the timer, and raises an error if no place is
/// left.
pub fn take_place(action: Uuid, visible: &Visible) -> Result<(), SqlError> {
    let arguments = [pg_uuid(action).into(), visible.parameter().into()];
    let counts = MAX_COMPLETED.with(|query| query.row(&arguments, |row| row.get::<i32>(1)));
    if counts.flatten().is_none() {
        return Ok(());
    }
    let locked = LOCK_COUNTED.with(|query| {
        query.row(&[pg_uuid(action).into()], |row| {
            (row.required::<String>(1), row.get::<i32>(2).map(i64::from))
        })
    });
    let Some((name, Some(max_runs))) = locked else {
        return Ok(());
    };
    let runs = count(vec![action]).remove(&action).unwrap_or_default();
    if runs.taken() < max_runs {
        return Ok(());
    }
    let message = match runs.unfinished {
        0 => format!("action \"{name}\" has had all of its {max_runs} runs"),
        _ => format!(
            "action \"{name}\" has no run left: of its {max_runs}, {} are completed and {} are under way",
            runs.completed, runs.unfinished
        ),
    };
    let code = PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
    Err(SqlError::new(code, message).with_hint("Raise max_runs first."))
}
