//! The end of a dispatch: completed, failed for good, or cancelled. Everything here runs as the engine.

pub use super::outcomes::Finished;
use super::outcomes::{self, Enqueued, SUBJECT_OF_ENQUEUED};
use crate::access::{Actor, Visible};
use crate::history::partition;
use crate::pg::jsonb::{self, Jsonb, JsonbArray};
use crate::pg::query::{Query, Row, fragment, pg_uuids, queries};
use chrono::DateTime;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys;
use std::thread::LocalKey;
use uuid::Uuid;

queries! {
    FINISH_REPORTED = "queue/queries/finish.sql"
        {reports: fragment!("queue/queries/one_report.sql"), accepted: fragment!("queue/queries/reportable.sql"),
         kept_errors: fragment!("queue/queries/kept_errors.sql"), subject: SUBJECT_OF_ENQUEUED}
        (UUIDARRAYOID, INT4ARRAYOID, JSONBARRAYOID, TEXTARRAYOID, TEXTOID, INT2OID, INT4ARRAYOID);
    FINISH_MANY_REPORTED = "queue/queries/finish.sql"
        {reports: fragment!("queue/queries/many_reports.sql"), accepted: fragment!("queue/queries/reportable.sql"),
         kept_errors: fragment!("queue/queries/kept_errors.sql"), subject: SUBJECT_OF_ENQUEUED}
        (UUIDARRAYOID, INT4ARRAYOID, JSONBARRAYOID, TEXTARRAYOID, TEXTOID, INT2OID, INT4ARRAYOID);
    FINISH_LOCKED = "queue/queries/finish.sql"
        {reports: fragment!("queue/queries/many_reports.sql"), accepted: "($7 IS NULL OR l.owner_id = ANY ($7))",
         kept_errors: fragment!("queue/queries/kept_errors.sql"), subject: SUBJECT_OF_ENQUEUED}
        (UUIDARRAYOID, INT4ARRAYOID, JSONBARRAYOID, TEXTARRAYOID, TEXTOID, INT2OID, INT4ARRAYOID);
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

/// Reports of consumers on running attempts.
pub struct Reports<'a> {
    pub ids: &'a [Uuid],
    pub attempts: &'a [i32],
    pub results: Results,
    pub visible: &'a Visible,
    pub actor: &'a Actor,
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
    // A consumer's array may begin at any index.
    let reads_first = !matches!(reports.results, Results::Array(_));
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
        [_] if reads_first => &FINISH_REPORTED,
        _ => &FINISH_MANY_REPORTED,
    };
    let finished = run(query, &arguments);
    outcomes::completed(&finished, reports.actor);
    finished
}

/// Ends dispatches that the caller has locked: (dispatch, reason).
pub fn end_locked(dispatches: &[(Uuid, Option<&str>)], end: End, actor: &Actor) -> Vec<Finished> {
    end_locked_with(dispatches, None, end, actor)
}

/// The same, and keeps what is known of the run of the first one.
pub fn end_locked_with(
    dispatches: &[(Uuid, Option<&str>)],
    result: Option<Jsonb>,
    end: End,
    actor: &Actor,
) -> Vec<Finished> {
    if dispatches.is_empty() {
        return Vec::new();
    }
    let reasons: Vec<Option<&str>> = dispatches.iter().map(|(_, reason)| *reason).collect();
    let arguments = [
        pg_uuids(dispatches.iter().map(|(id, _)| *id)).into(),
        DatumWithOid::null_oid(pg_sys::INT4ARRAYOID),
        match result {
            Some(result) => jsonb::array_of_one(Some(result)),
            None => DatumWithOid::null_oid(pg_sys::JSONBARRAYOID),
        },
        reasons.clone().into(),
        end.as_str().into(),
        partition::current().into(),
        DatumWithOid::null_oid(pg_sys::INT4ARRAYOID),
    ];
    let finished = run(&FINISH_LOCKED, &arguments);
    match end {
        End::Completed => outcomes::completed(&finished, actor),
        End::Failed => outcomes::failed(&finished, &reasons, actor),
        End::Cancelled => outcomes::cancelled(&finished, &reasons, actor),
    }
    finished
}

/// Completes dispatches that the caller has locked, claimed or not: (dispatch, result).
pub fn complete_locked(dispatches: &[(Uuid, Jsonb)], actor: &Actor) -> Vec<Finished> {
    if dispatches.is_empty() {
        return Vec::new();
    }
    let results: Vec<Option<Jsonb>> = dispatches.iter().map(|(_, result)| Some(*result)).collect();
    let arguments = [
        pg_uuids(dispatches.iter().map(|(id, _)| *id)).into(),
        DatumWithOid::null_oid(pg_sys::INT4ARRAYOID),
        jsonb::array_of(&results),
        DatumWithOid::null_oid(pg_sys::TEXTARRAYOID),
        End::Completed.as_str().into(),
        partition::current().into(),
        DatumWithOid::null_oid(pg_sys::INT4ARRAYOID),
    ];
    let finished = run(&FINISH_LOCKED, &arguments);
    outcomes::completed(&finished, actor);
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
        record_events: row.get(10),
        enqueued: Enqueued::read(row, 11),
        was_ahead: row.required(12),
        started_at: row.instant(13),
    };
    query.with(|query| query.rows(arguments, read))
}
