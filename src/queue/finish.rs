//! The end of a dispatch: completed, failed for good, or cancelled. Everything here runs as the engine.

use crate::access::Visible;
use crate::history::{events, partition};
use crate::pg::jsonb::JsonbArray;
use crate::pg::query::{Query, Row, fragment, pg_uuids, queries};
use crate::runtime::settings;
use chrono::{DateTime, Utc};
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys;
use std::thread::LocalKey;
use uuid::Uuid;

queries! {
    FINISH_REPORTED = "queue/queries/finish.sql"
        {reports: fragment!("queue/queries/one_report.sql"), accepted: fragment!("queue/queries/reportable.sql")}
        (UUIDARRAYOID, INT4ARRAYOID, JSONBARRAYOID, TEXTARRAYOID, TEXTOID, INT2OID, INT4ARRAYOID);
    FINISH_MANY_REPORTED = "queue/queries/finish.sql"
        {reports: fragment!("queue/queries/many_reports.sql"), accepted: fragment!("queue/queries/reportable.sql")}
        (UUIDARRAYOID, INT4ARRAYOID, JSONBARRAYOID, TEXTARRAYOID, TEXTOID, INT2OID, INT4ARRAYOID);
    FINISH_LOCKED = "queue/queries/finish.sql"
        {reports: fragment!("queue/queries/many_reports.sql"), accepted: "($7 IS NULL OR l.owner_id = ANY ($7))"}
        (UUIDARRAYOID, INT4ARRAYOID, JSONBARRAYOID, TEXTARRAYOID, TEXTOID, INT2OID, INT4ARRAYOID);
    COUNT_OUTCOMES = "queue/queries/count_outcomes.sql" (UUIDARRAYOID, BOOLOID);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Completed,
    Failed,
    Cancelled,
}

impl End {
    pub fn as_str(self) -> &'static str {
        match self {
            End::Completed => "completed",
            End::Failed => "failed",
            End::Cancelled => "cancelled",
        }
    }
}

/// A dispatch that has been moved to the history.
pub struct Finished {
    /// The number of the report, counted from 0.
    pub number: usize,
    pub id: Uuid,
    pub attempt: i32,
    pub available_at: DateTime<Utc>,
    pub cancel_requested: bool,
    pub action: Option<Uuid>,
    pub context_version: Option<i32>,
    pub owner_id: i32,
    pub claimed_by: Option<String>,
}

/// Reports of consumers on running attempts.
pub struct Reports<'a> {
    pub ids: &'a [Uuid],
    pub attempts: &'a [i32],
    pub results: Results,
    pub visible: &'a Visible,
}

/// What consumers reported as results.
pub enum Results {
    None,
    Array(JsonbArray),
    One(DatumWithOid<'static>),
}

impl Results {
    fn parameter(self) -> DatumWithOid<'static> {
        match self {
            Results::None => DatumWithOid::null_oid(pg_sys::JSONBARRAYOID),
            Results::Array(array) => array.into(),
            Results::One(array) => array,
        }
    }
}

/// Completes the reported attempts that are running and whose lease has not expired.
pub fn complete(reports: Reports) -> Vec<Finished> {
    let arguments = [
        pg_uuids(reports.ids.iter().copied()).into(),
        reports.attempts.to_vec().into(),
        reports.results.parameter(),
        DatumWithOid::null_oid(pg_sys::TEXTARRAYOID),
        End::Completed.as_str().into(),
        partition::current().into(),
        reports.visible.parameter().into(),
    ];
    let query = match reports.ids {
        [_] => &FINISH_REPORTED,
        _ => &FINISH_MANY_REPORTED,
    };
    let finished = run(query, &arguments);
    count(&finished, End::Completed);
    finished
}

/// Ends dispatches that the caller has locked: (dispatch, reason).
pub fn end_locked(dispatches: &[(Uuid, Option<&str>)], end: End) -> Vec<Finished> {
    if dispatches.is_empty() {
        return Vec::new();
    }
    let reasons: Vec<Option<&str>> = dispatches.iter().map(|(_, reason)| *reason).collect();
    let arguments = [
        pg_uuids(dispatches.iter().map(|(id, _)| *id)).into(),
        DatumWithOid::null_oid(pg_sys::INT4ARRAYOID),
        DatumWithOid::null_oid(pg_sys::JSONBARRAYOID),
        reasons.into(),
        end.as_str().into(),
        partition::current().into(),
        DatumWithOid::null_oid(pg_sys::INT4ARRAYOID),
    ];
    let finished = run(&FINISH_LOCKED, &arguments);
    if end != End::Cancelled {
        count(&finished, end);
    }
    finished
}

fn run(query: &'static LocalKey<Query>, arguments: &[DatumWithOid]) -> Vec<Finished> {
    let read = |row: &Row| Finished {
        number: (row.required::<i64>(1) - 1) as usize,
        id: row.uuid(2),
        attempt: row.required(3),
        available_at: row.instant(4).unwrap_or(DateTime::UNIX_EPOCH),
        cancel_requested: row.required(5),
        action: row.optional_uuid(6),
        context_version: row.get(7),
        owner_id: row.required(8),
        claimed_by: row.get(9),
    };
    query.with(|query| query.rows(arguments, read))
}

/// Counts finished dispatches in the progress of their actions. Notifies the contact of an action that has failed too
/// often in a row.
fn count(finished: &[Finished], end: End) {
    let actions: Vec<Uuid> = finished.iter().filter_map(|one| one.action).collect();
    if actions.is_empty() {
        return;
    }
    let arguments = [pg_uuids(actions).into(), (end == End::Completed).into()];
    let counted = COUNT_OUTCOMES.with(|query| {
        query.rows(&arguments, |row| {
            (row.uuid(1), row.required::<i32>(2), row.required::<i32>(3))
        })
    });
    if end == End::Completed {
        return;
    }
    let threshold = settings::error_threshold();
    let crossed = |(_, in_a_row, now): &&(Uuid, i32, i32)| {
        *in_a_row >= threshold && in_a_row - now < threshold
    };
    let problem = format!("{threshold} dispatches in a row have failed");
    let problems = counted
        .iter()
        .filter(crossed)
        .map(|(action, _, _)| (*action, problem.clone()));
    events::notify_contacts(problems.collect());
}
