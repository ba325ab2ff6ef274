//! How a delivery went: `recur.report_webhook`, and the lease of one that runs.
//!
//! A program that delivers may report on webhooks of every owner, and on nothing else.

use super::health::{self, Ended};
use crate::access::{Actor, Visible};
use crate::pg::error::{OrRaise, SqlError, given};
use crate::pg::interval;
use crate::pg::jsonb::{self, Jsonb};
use crate::pg::lock_timeout::LockTimeout;
use crate::pg::planner::PlannerPins;
use crate::pg::query::{pg_uuid, plain_uuid, queries};
use crate::pg::srf::ResultSet;
use crate::queue::finish::{self, End, Reports, Results};
use crate::queue::report::{self, Answer, Report, lock_reported};
use crate::queue::requeue::{self, Requeue};
use crate::runtime::environment::environment;
use crate::runtime::{clock, engine};
use chrono::TimeDelta;
use pgrx::datum::{Interval, Uuid as PgUuid};
use pgrx::pg_sys::FunctionCallInfo;
use pgrx::prelude::*;
use recur_core::action::{Json, check_bytes};
use recur_core::report::{Outcome, stored_reason};
use recur_core::webhook::{Delivery, after_failure};
use std::rc::Rc;
use uuid::Uuid;

queries! {
    DELIVERY = "webhooks/queries/delivery.sql" (UUIDOID);
}

/// A dispatch may be locked by a transaction of its owner, which must not hold up the deliveries of all. The program
/// that delivers tries it again.
const LONGEST_LOCK_WAIT_MILLIS: i32 = 50;

/// A webhook that was claimed.
struct Claimed {
    id: Uuid,
    attempt: i32,
    owner_id: i32,
    endpoint: String,
}

impl Claimed {
    /// Raises an error where the id is that of no webhook.
    fn find(id: Option<PgUuid>, attempt: Option<i32>) -> Claimed {
        let id = plain_uuid(given("id", id).or_raise());
        let attempt = given("attempt", attempt).or_raise();
        let found = engine::as_engine(|| {
            DELIVERY.with(|query| {
                query.row(&[pg_uuid(id).into()], |row| {
                    (row.required(1), row.required(2))
                })
            })
        });
        let found = found.ok_or_else(|| {
            SqlError::no_data_found(format!("no webhook has the id {id}"))
                .with_hint("recur.claim_webhooks gives ids.")
        });
        let (owner_id, endpoint) = found.or_raise();
        Claimed {
            id,
            attempt,
            owner_id,
            endpoint,
        }
    }

    fn visible(&self) -> Visible {
        Visible::Owners(Rc::new([self.owner_id]))
    }

    fn report(&self) -> Report {
        Report::of(self.id, self.attempt, self.visible())
    }
}

/// `recur.report_webhook(…)`.
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)]
fn report_webhook(
    id: Option<PgUuid>,
    attempt: Option<i32>,
    outcome: Option<&str>,
    http_status: Option<i32>,
    result: Option<Jsonb>,
    reason: Option<&str>,
    retry_in: Option<Interval>,
    call: FunctionCallInfo,
) {
    let _timeout = LockTimeout::of_millis(LONGEST_LOCK_WAIT_MILLIS);
    let _pins = PlannerPins::set();
    let delivery: Delivery = given("outcome", outcome).or_raise().parse().or_raise();
    if let Some(result) = &result {
        check_bytes("result", result.size(), &environment()).or_raise();
    }
    let retry_in = retry_in.map(|retry_in| checked_pause(&retry_in).or_raise());
    let claimed = Claimed::find(id, attempt);
    let actor = Actor::current();
    let answers = ResultSet::begin(call);
    engine::as_engine(|| {
        let reason = match delivery {
            Delivery::Delivered => None,
            _ => Some(stored_reason(reason)),
        };
        let ended = Ended {
            dispatch: claimed.id,
            delivery,
            http_status,
            reason: reason.as_deref(),
            retry_in,
        };
        match delivery {
            Delivery::Delivered => delivered(&claimed, result, &actor),
            _ => failed(&claimed, &ended, result, &actor),
        }
        .put(&answers);
        health::note(
            claimed.owner_id,
            &claimed.endpoint,
            &ended,
            clock::now(),
            &actor,
        );
    });
}

/// The pause that an endpoint asks for.
fn checked_pause(retry_in: &Interval) -> Result<TimeDelta, SqlError> {
    let parts = interval::parts(retry_in);
    parts.check("retry_in", true)?;
    let days = i64::from(parts.months) * 30 + i64::from(parts.days);
    Ok(TimeDelta::days(days) + TimeDelta::microseconds(parts.micros))
}

fn delivered(claimed: &Claimed, result: Option<Jsonb>, actor: &Actor) -> Answer {
    let finished = finish::complete(Reports {
        ids: &[claimed.id],
        attempts: &[claimed.attempt],
        results: match result {
            Some(result) => Results::One(jsonb::array_of_one(Some(result))),
            None => Results::None,
        },
        visible: &claimed.visible(),
        actor,
    });
    match finished.first() {
        Some(one) => Answer::finished(one, End::Completed),
        None => claimed.report().refuse(),
    }
}

fn failed(claimed: &Claimed, ended: &Ended, result: Option<Jsonb>, actor: &Actor) -> Answer {
    let locked = lock_reported(&[claimed.id], &[claimed.attempt], &claimed.visible());
    let Some(reported) = locked.first() else {
        claimed.report().refuse();
    };
    let now = clock::now();
    let is_final = ended.delivery == Delivery::Gone;
    let backoff = reported.backoff.as_deref();
    let end = match after_failure(&reported.running, backoff, ended.retry_in, is_final, now) {
        Outcome::Retry { available_at } => {
            let one = Requeue {
                id: claimed.id,
                available_at,
                reason: ended.reason,
            };
            let requeued = requeue::requeue(&[one], actor);
            requeue::announce_each(&requeued, now);
            return Answer {
                id: claimed.id,
                status: "pending",
                attempt: claimed.attempt,
                available_at,
                cancel_requested: false,
            };
        }
        Outcome::Failed => End::Failed,
        Outcome::Cancelled => End::Cancelled,
    };
    let ended = finish::end_locked_with(&[(claimed.id, ended.reason)], result, end, actor);
    match ended.first() {
        Some(one) => Answer::finished(one, end),
        None => claimed.report().refuse(),
    }
}

/// `recur.release_webhook(id, attempt)`.
#[pg_extern(sql = false)]
fn release_webhook(id: Option<PgUuid>, attempt: Option<i32>, call: FunctionCallInfo) {
    let _timeout = LockTimeout::of_millis(LONGEST_LOCK_WAIT_MILLIS);
    let _pins = PlannerPins::set();
    let claimed = Claimed::find(id, attempt);
    report::give_back(claimed.report(), call, None, |reported, now| {
        reported.running.release(now)
    });
}

/// `recur.extend_webhook(id, attempt, lease)`.
#[pg_extern(sql = false)]
fn extend_webhook(
    id: Option<PgUuid>,
    attempt: Option<i32>,
    lease: Option<Interval>,
    call: FunctionCallInfo,
) {
    let _timeout = LockTimeout::of_millis(LONGEST_LOCK_WAIT_MILLIS);
    let _pins = PlannerPins::set();
    let claimed = Claimed::find(id, attempt);
    report::extend_lease(claimed.report(), lease, call);
}
