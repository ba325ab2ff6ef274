//! Reports of consumers on one attempt: complete, fail, extend, release.
//!
//! The number of the attempt is the fence. A report on an attempt whose lease has expired is refused with the SQLSTATE
//! RC001 and changes nothing: another consumer may have taken over.

use super::finish::{self, End, Finished, Reports, Results};
use super::requeue::{self, Requeue};
use crate::access::{self, Actor, Visible};
use crate::history::contexts::{self, NewContext};
use crate::pg::error::{OrRaise, SqlError, given};
use crate::pg::jsonb::{self, Jsonb};
use crate::pg::planner::PlannerPins;
use crate::pg::query::{pg_uuid, pg_uuids, plain_uuid, queries};
use crate::pg::srf::ResultSet;
use crate::pg::{interval, time};
use crate::runtime::environment::environment;
use crate::runtime::{clock, engine};
use chrono::{DateTime, Utc};
use pgrx::datum::{Interval, Uuid as PgUuid};
use pgrx::pg_sys::FunctionCallInfo;
use pgrx::prelude::*;
use recur_core::action::Interval as Span;
use recur_core::action::{Json, check_bytes, check_object};
use recur_core::backoff::RetryBackoff;
use recur_core::report::{Outcome, Running, stored_reason};
use uuid::Uuid;

queries! {
    LOCK_REPORTED = "queue/queries/lock_reported.sql" (UUIDARRAYOID, INT4ARRAYOID, INT4ARRAYOID);
    EXTEND = "queue/queries/extend.sql" {longest: Span::LONGEST_TEXT} (UUIDOID, INT4OID, INTERVALOID, INT4ARRAYOID);
    DISPATCH_STATE = "queue/queries/dispatch_state.sql" (UUIDOID, INT4ARRAYOID);
}

/// The row that complete, fail, extend, release, cancel and retry return.
pub struct Answer {
    pub id: Uuid,
    pub status: &'static str,
    pub attempt: i32,
    pub available_at: DateTime<Utc>,
    pub cancel_requested: bool,
}

impl Answer {
    pub fn finished(one: &Finished, end: End) -> Answer {
        Answer {
            id: one.id,
            status: end.as_str(),
            attempt: one.attempt,
            available_at: one.available_at,
            cancel_requested: one.cancel_requested,
        }
    }

    pub fn put(&self, result: &ResultSet) {
        result.put(&[
            pg_uuid(self.id).into(),
            self.attempt.into(),
            self.status.into(),
            time::timestamptz(self.available_at).into(),
            self.cancel_requested.into(),
        ]);
    }
}

/// A report on an attempt, and what its consumer sees.
pub struct Report {
    id: Uuid,
    attempt: i32,
    visible: Visible,
}

impl Report {
    pub fn new(id: Option<PgUuid>, attempt: Option<i32>) -> Report {
        Report {
            id: plain_uuid(given("id", id).or_raise()),
            attempt: given("attempt", attempt).or_raise(),
            visible: access::visible(),
        }
    }

    /// A report on a dispatch that is seen by these owners.
    pub fn of(id: Uuid, attempt: i32, visible: Visible) -> Report {
        Report {
            id,
            attempt,
            visible,
        }
    }

    pub fn refuse(&self) -> ! {
        let rejection = rejection(self.id, Some(self.attempt), &self.visible);
        let error = match rejection.status {
            None => SqlError::no_data_found(rejection.problem),
            Some(_) => SqlError::own("RC001", rejection.problem)
                .with_hint("Drop the work of this attempt: another one counts, or none."),
        };
        match rejection.detail {
            Some(detail) => error.with_detail(detail),
            None => error,
        }
        .raise()
    }
}

/// Why a report is not accepted.
pub struct Rejection {
    /// The status of the dispatch; None if the consumer sees no such dispatch.
    pub status: Option<String>,
    pub problem: String,
    pub detail: Option<String>,
}

pub fn rejection(id: Uuid, reported: Option<i32>, visible: &Visible) -> Rejection {
    let arguments = [pg_uuid(id).into(), visible.parameter().into()];
    let state = DISPATCH_STATE.with(|query| {
        query.row(&arguments, |row| {
            (
                row.required::<String>(1),
                row.required::<i32>(2),
                row.get::<String>(3),
            )
        })
    });
    let Some((status, attempt, lease_expires_at)) = state else {
        return Rejection {
            status: None,
            problem: format!("no dispatch has the id {id}"),
            detail: None,
        };
    };
    let detail = match (status.as_str(), attempt) {
        ("pending", 0) => "It is pending and has not been claimed yet.".to_owned(),
        ("pending", _) => format!("It is pending again, after attempt {attempt}."),
        ("running", _) if reported == Some(attempt) => {
            format!(
                "Its lease expired at {}.",
                lease_expires_at.unwrap_or_default()
            )
        }
        _ => format!("It is {status}, at attempt {attempt}."),
    };
    let shown = reported.map_or("NULL".to_owned(), |attempt| attempt.to_string());
    Rejection {
        status: Some(status),
        problem: format!("attempt {shown} of dispatch {id} is not running"),
        detail: Some(detail),
    }
}

/// `recur.complete(id, attempt, result, context)`.
#[pg_extern(sql = false)]
fn complete(
    id: Option<PgUuid>,
    attempt: Option<i32>,
    result: Option<Jsonb>,
    context: Option<Jsonb>,
    call: FunctionCallInfo,
) {
    let report = Report::new(id, attempt);
    if let Some(result) = &result {
        check_bytes("result", result.size(), &environment()).or_raise();
    }
    if let Some(context) = &context {
        check_object("context", context, &environment()).or_raise();
    }
    let actor = Actor::current();
    let answers = ResultSet::begin(call);
    let _pins = PlannerPins::set();
    engine::as_engine(|| {
        let finished = finish::complete(Reports {
            ids: &[report.id],
            attempts: &[report.attempt],
            results: match result {
                Some(result) => Results::One(jsonb::array_of_one(Some(result))),
                None => Results::None,
            },
            visible: &report.visible,
            actor: &actor,
        });
        let Some(one) = finished.first() else {
            report.refuse();
        };
        if let (Some(context), Some(action)) = (context, one.action) {
            leave_context(one, action, context, &actor.name);
        }
        Answer::finished(one, End::Completed).put(&answers);
    });
}

/// Leaves a context for the next run, unless another run has left one since the claim.
fn leave_context(one: &Finished, action: Uuid, context: Jsonb, actor: &str) {
    let set = contexts::set(NewContext {
        action,
        context: Some(context),
        expected_version: one.context_version,
        dispatch: Some(one.id),
        actor,
    });
    if let Err(conflict) = set {
        let claimed = one.context_version.unwrap_or_default();
        let message = format!(
            "the context of dispatch {} has changed since it was claimed",
            one.id
        );
        SqlError::own("RC002", message)
            .with_detail(format!(
                "It was claimed with version {claimed}, and the action has version {}.",
                conflict.found
            ))
            .with_hint("Report a failure, so that it is tried again with the new context, or complete it without one.")
            .raise();
    }
}

/// A report on a dispatch that is locked now.
pub struct Reported {
    /// The number of the report, counted from 0.
    pub number: usize,
    pub running: Running,
    pub backoff: Option<String>,
}

impl Reported {
    pub fn fail(&self, retry: bool, now: DateTime<Utc>) -> Outcome {
        let backoff = RetryBackoff::from_stored(self.backoff.as_deref());
        self.running.fail(retry, &backoff, now)
    }
}

/// Locks the dispatches of the reports that are accepted.
pub fn lock_reported(ids: &[Uuid], attempts: &[i32], visible: &Visible) -> Vec<Reported> {
    let arguments = [
        pg_uuids(ids.iter().copied()).into(),
        attempts.to_vec().into(),
        visible.parameter().into(),
    ];
    LOCK_REPORTED.with(|query| {
        query.rows(&arguments, |row| Reported {
            number: (row.required::<i64>(1) - 1) as usize,
            running: Running {
                id: row.uuid(2),
                attempt: row.required(3),
                releases: row.required(4),
                max_attempts: row.required(5),
                cancel_requested: row.required(6),
            },
            backoff: row.get(7),
        })
    })
}

/// `recur.fail(id, attempt, reason, retry, retry_in)`.
#[pg_extern(sql = false)]
fn fail(
    id: Option<PgUuid>,
    attempt: Option<i32>,
    reason: Option<&str>,
    retry: Option<bool>,
    retry_in: Option<Interval>,
    call: FunctionCallInfo,
) {
    let reason = stored_reason(reason);
    let retry = retry.unwrap_or(true);
    if let Some(pause) = &retry_in {
        check_retry_in(pause, retry).or_raise();
    }
    give_back(
        Report::new(id, attempt),
        call,
        Some(&reason),
        |reported, now| match retry_in {
            Some(pause) => reported.running.fail_until(interval::after(now, pause)),
            None => reported.fail(retry, now),
        },
    );
}

fn check_retry_in(pause: &Interval, retry: bool) -> Result<(), SqlError> {
    interval::check_pause("retry_in", pause)?;
    if retry {
        return Ok(());
    }
    let (shown, problem) = (
        interval::parts(pause).to_string(),
        "must be left out where retry is false",
    );
    Err(SqlError::invalid_argument("retry_in", &shown, problem)
        .with_hint("Leave out retry to try again, or retry_in to give up."))
}

/// `recur.release(id, attempt, delay)`.
#[pg_extern(sql = false)]
fn release(
    id: Option<PgUuid>,
    attempt: Option<i32>,
    delay: Option<Interval>,
    call: FunctionCallInfo,
) {
    if let Some(delay) = &delay {
        interval::check_pause("delay", delay).or_raise();
    }
    give_back(Report::new(id, attempt), call, None, |reported, now| {
        let available_at = delay.map_or(now, |delay| interval::after(now, delay));
        reported.running.release(available_at)
    });
}

/// Ends an attempt that is not completed, and puts the answer. Returns the dispatch if that was its end.
pub fn give_back(
    report: Report,
    call: FunctionCallInfo,
    reason: Option<&str>,
    decide: impl FnOnce(&Reported, DateTime<Utc>) -> Outcome,
) -> Option<(Finished, End)> {
    let actor = Actor::current();
    let answers = ResultSet::begin(call);
    let _pins = PlannerPins::set();
    engine::as_engine(|| {
        let locked = lock_reported(&[report.id], &[report.attempt], &report.visible);
        let Some(reported) = locked.first() else {
            report.refuse();
        };
        let now = clock::now();
        let end = match decide(reported, now) {
            Outcome::Retry { available_at } => {
                let one = Requeue {
                    id: report.id,
                    available_at,
                    reason,
                };
                let requeued = requeue::requeue(&[one], &actor);
                requeue::announce_each(&requeued, now);
                for one in &requeued {
                    Answer {
                        id: one.dispatch.id,
                        status: "pending",
                        attempt: one.attempt,
                        available_at: one.available_at,
                        cancel_requested: false,
                    }
                    .put(&answers);
                }
                return None;
            }
            Outcome::Failed => End::Failed,
            Outcome::Cancelled => End::Cancelled,
        };
        let mut ended = finish::end_locked(&[(report.id, reason)], end, &actor);
        let one = ended.pop()?;
        Answer::finished(&one, end).put(&answers);
        Some((one, end))
    })
}

/// `recur.extend(id, attempt, lease)`.
#[pg_extern(sql = false)]
fn extend(
    id: Option<PgUuid>,
    attempt: Option<i32>,
    lease: Option<Interval>,
    call: FunctionCallInfo,
) {
    extend_lease(Report::new(id, attempt), lease, call);
}

/// Renews the lease of an attempt, and puts the answer.
pub fn extend_lease(report: Report, lease: Option<Interval>, call: FunctionCallInfo) {
    if let Some(lease) = &lease {
        interval::check_lease(lease, "recur.release gives a dispatch back.").or_raise();
    }
    let answers = ResultSet::begin(call);
    let _pins = PlannerPins::set();
    engine::as_engine(|| {
        let arguments = [
            pg_uuid(report.id).into(),
            report.attempt.into(),
            lease.into(),
            report.visible.parameter().into(),
        ];
        let extended = EXTEND.with(|query| {
            query.row(&arguments, |row| Answer {
                id: report.id,
                status: "running",
                attempt: row.required(1),
                available_at: row.instant(2).unwrap_or(DateTime::UNIX_EPOCH),
                cancel_requested: row.required(3),
            })
        });
        match extended {
            Some(answer) => answer.put(&answers),
            None => report.refuse(),
        }
    });
}
