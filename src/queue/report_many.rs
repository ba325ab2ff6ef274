//! Reports on many attempts at once: a few statements, however many reports. A report that is not accepted is answered
//! with the reason, and does not stop the others.

use super::finish::{self, End, Reports, Results};
use super::report::{self, Reported};
use super::requeue::{self, Requeue};
use crate::access::{self, Actor, Visible};
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::jsonb::JsonbArray;
use crate::pg::planner::PlannerPins;
use crate::pg::query::{pg_uuid, plain_uuid};
use crate::pg::srf::ResultSet;
use crate::runtime::environment::environment;
use crate::runtime::{clock, engine};
use pgrx::datum::Uuid as PgUuid;
use pgrx::pg_sys::FunctionCallInfo;
use pgrx::prelude::*;
use recur_core::action::check_bytes;
use recur_core::report::{Outcome, stored_reason};
use std::borrow::Cow;
use uuid::Uuid;

/// Reports as the consumer sent them. A NULL among the ids or attempts becomes an id or attempt that does not exist.
struct Batch {
    ids: Vec<Uuid>,
    attempts: Vec<i32>,
    visible: Visible,
    actor: Actor,
}

impl Batch {
    fn new(ids: Option<Vec<Option<PgUuid>>>, attempts: Option<Vec<Option<i32>>>) -> Batch {
        let ids = ids.unwrap_or_default();
        let attempts = attempts.unwrap_or_default();
        check_length("attempts", attempts.len(), ids.len());
        Batch {
            ids: ids
                .into_iter()
                .map(|id| id.map_or(Uuid::nil(), plain_uuid))
                .collect(),
            attempts: attempts
                .into_iter()
                .map(|attempt| attempt.unwrap_or(-1))
                .collect(),
            visible: access::visible(),
            actor: Actor::current(),
        }
    }

    /// Answers each report: with the new status of the dispatch, or with the reason for not accepting the report.
    fn answer(&self, accepted: &[Option<&'static str>], answers: &ResultSet) {
        for ((id, attempt), status) in self.ids.iter().zip(&self.attempts).zip(accepted) {
            let (status, problem) = match status {
                Some(status) => (Some((*status).to_owned()), None),
                None => {
                    let rejection = report::rejection(*id, Some(*attempt), &self.visible);
                    let detail = rejection.detail.map(|detail| format!(": {detail}"));
                    (
                        rejection.status,
                        Some(rejection.problem + &detail.unwrap_or_default()),
                    )
                }
            };
            answers.put(&[
                pg_uuid(*id).into(),
                problem.is_none().into(),
                status.into(),
                problem.into(),
            ]);
        }
    }
}

fn check_length(argument: &str, length: usize, expected: usize) {
    if length != expected {
        let message = format!(
            "invalid {argument}: must have as many elements as ids, {expected}, and has {length}"
        );
        SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message).raise();
    }
}

/// `recur.complete_many(ids, attempts, results)`.
#[pg_extern(sql = false)]
fn complete_many(
    ids: Option<Vec<Option<PgUuid>>>,
    attempts: Option<Vec<Option<i32>>>,
    results: Option<JsonbArray>,
    call: FunctionCallInfo,
) {
    let _pins = PlannerPins::set();
    let batch = Batch::new(ids, attempts);
    if let Some(results) = &results {
        check_length("results", results.len(), batch.ids.len());
        check_bytes("results", results.largest_size(), &environment()).or_raise();
    }
    let answers = ResultSet::begin(call);
    engine::as_engine(|| {
        let finished = finish::complete(Reports {
            ids: &batch.ids,
            attempts: &batch.attempts,
            results: results.map_or(Results::None, Results::Array),
            visible: &batch.visible,
            actor: &batch.actor,
        });
        let mut accepted = vec![None; batch.ids.len()];
        for one in &finished {
            accepted[one.number] = Some(End::Completed.as_str());
        }
        batch.answer(&accepted, &answers);
    });
}

/// `recur.fail_many(ids, attempts, reasons, retry)`.
#[pg_extern(sql = false)]
fn fail_many(
    ids: Option<Vec<Option<PgUuid>>>,
    attempts: Option<Vec<Option<i32>>>,
    reasons: Option<Vec<Option<String>>>,
    retry: Option<bool>,
    call: FunctionCallInfo,
) {
    let _pins = PlannerPins::set();
    let batch = Batch::new(ids, attempts);
    let reasons = reasons.unwrap_or_default();
    let reasons: Vec<_> = reasons
        .iter()
        .map(|one| stored_reason(one.as_deref()))
        .collect();
    check_length("reasons", reasons.len(), batch.ids.len());
    let retry = retry.unwrap_or(true);
    let answers = ResultSet::begin(call);
    engine::as_engine(|| {
        let locked = report::lock_reported(&batch.ids, &batch.attempts, &batch.visible);
        let mut accepted = vec![None; batch.ids.len()];
        fail_all(&locked, &reasons, retry, &batch.actor, &mut accepted);
        batch.answer(&accepted, &answers);
    });
}

fn fail_all(
    locked: &[Reported],
    reasons: &[Cow<str>],
    retry: bool,
    actor: &Actor,
    accepted: &mut [Option<&'static str>],
) {
    let now = clock::now();
    let (mut again, mut failed, mut cancelled) = (Vec::new(), Vec::new(), Vec::new());
    for reported in locked {
        let id = reported.running.id;
        let reason = reasons[reported.number].as_ref();
        accepted[reported.number] = Some(match reported.fail(retry, now) {
            Outcome::Retry { available_at } => {
                again.push(Requeue {
                    id,
                    available_at,
                    reason: Some(reason),
                });
                "pending"
            }
            Outcome::Failed => {
                failed.push((id, Some(reason)));
                End::Failed.as_str()
            }
            Outcome::Cancelled => {
                cancelled.push((id, Some(reason)));
                End::Cancelled.as_str()
            }
        });
    }
    requeue::announce_each(&requeue::requeue(&again, actor), now);
    finish::end_locked(&failed, End::Failed, actor);
    finish::end_locked(&cancelled, End::Cancelled, actor);
}
