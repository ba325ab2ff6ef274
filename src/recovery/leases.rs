//! Leases that expire: the dispatch goes back to the queue, or fails for good. Everything here but the entry points
//! runs as the engine.

use crate::access::Actor;
use crate::history::partition;
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::index_scan::{self, LowerBound};
use crate::pg::planner::PlannerPins;
use crate::pg::query::{pg_uuid, pg_uuids, queries};
use crate::pg::{interval, time};
use crate::queue::finish::{self, End, Finished};
use crate::queue::outcomes::Enqueued;
use crate::queue::requeue::{self, Requeue, Requeued};
use crate::runtime::{clock, engine, installation};
use chrono::{DateTime, Utc};
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::prelude::*;
use recur_core::action::Interval as Span;
use recur_core::event::EventKind;
use recur_core::notice::LEASE_EXPIRED as EXPIRED;
use recur_core::report::{Outcome, Running};
use serde_json::json;
use uuid::Uuid;

queries! {
    LOCK_COUNTABLE = "recovery/queries/lock_countable.sql" (TIMESTAMPTZOID, INT4OID, UUIDARRAYOID);
    LOCK_EXPIRED = "recovery/queries/lock_expired.sql" (TIMESTAMPTZOID, INT4OID, UUIDARRAYOID, UUIDARRAYOID);
    EXPIRED_LEASES = "recovery/queries/expired_leases.sql" (TIMESTAMPTZOID, INT4OID);
    LOCK_ABANDONED = "recovery/queries/lock_abandoned.sql" (INTERVALOID);
    RECORD_RECOVERIES = "recovery/queries/record_recoveries.sql" {kind: EventKind::Recovered.as_str()}
        (UUIDARRAYOID, UUIDARRAYOID, INT4ARRAYOID, TEXTARRAYOID, TEXTOID, TEXTOID, INT2OID);
}

type Instant = DateTime<Utc>;

/// Takes dispatches, or only `only`, from consumers whose lease has expired, and returns how many.
///
/// All at once, skipping every row that another transaction has locked. The progress of actions is locked before their
/// dispatches here, and not after them as elsewhere: so a dispatch that must wait for its progress is not locked in
/// vain. This order causes no deadlock, because the worker waits for no lock.
pub fn expire(now: Instant, limit: i32, only: Option<&[Uuid]>) -> usize {
    let only = only.map(|ids| pg_uuids(ids.iter().copied()));
    let arguments = [
        time::timestamptz(now).into(),
        limit.into(),
        only.clone().into(),
    ];
    let countable = LOCK_COUNTABLE.with(|query| query.rows(&arguments, |row| row.uuid(1)));
    let arguments = [
        time::timestamptz(now).into(),
        limit.into(),
        only.into(),
        pg_uuids(countable).into(),
    ];
    let expired = LOCK_EXPIRED.with(|query| {
        query.rows(&arguments, |row| Running {
            id: row.uuid(1),
            attempt: row.required(2),
            releases: row.required(3),
            max_attempts: row.required(4),
            cancel_requested: row.required(5),
        })
    });
    let clock = clock::now();
    let (mut again, mut failed, mut cancelled) = (Vec::new(), Vec::new(), Vec::new());
    for running in &expired {
        match running.expire(clock) {
            Outcome::Retry { available_at } => again.push(Requeue {
                id: running.id,
                available_at,
                reason: Some(EXPIRED),
            }),
            Outcome::Failed => failed.push((running.id, Some(EXPIRED))),
            Outcome::Cancelled => cancelled.push((running.id, Some(EXPIRED))),
        }
    }
    let actor = Actor::worker();
    let requeued = requeue::requeue(&again, &actor);
    let mut recoveries: Vec<Recovery> = requeued.iter().map(Recovery::requeued).collect();
    for (dispatches, end) in [(failed, End::Failed), (cancelled, End::Cancelled)] {
        let ended = finish::end_locked(&dispatches, end, &actor);
        recoveries.extend(ended.iter().map(|one| Recovery::finished(one, end)));
    }
    record(&recoveries, EXPIRED, &actor);
    requeue::announce_counts(&requeued);
    expired.len()
}

/// Lets runs fail that have given no sign of life for this long, and returns how many.
pub fn give_up_abandoned(max_age: Interval, actor: &Actor) -> usize {
    const ABANDONED: &str = "recovered from restart";
    let arguments = [max_age.into()];
    let abandoned = LOCK_ABANDONED.with(|query| query.rows(&arguments, |row| row.uuid(1)));
    let dispatches: Vec<_> = abandoned.iter().map(|id| (*id, Some(ABANDONED))).collect();
    let ended = finish::end_locked(&dispatches, End::Failed, actor);
    let recoveries: Vec<Recovery> = ended
        .iter()
        .map(|one| Recovery::finished(one, End::Failed))
        .collect();
    record(&recoveries, ABANDONED, actor);
    abandoned.len()
}

/// Dispatches whose lease has expired.
pub fn expired(now: Instant, limit: i32) -> Vec<Uuid> {
    let arguments = [time::timestamptz(now).into(), limit.into()];
    EXPIRED_LEASES.with(|query| query.rows(&arguments, |row| row.uuid(1)))
}

/// When the next lease ends, or ended.
pub fn next_end(from: LowerBound) -> Option<Instant> {
    index_scan::first(installation::find()?.live_dispatches_leased, from)
}

/// A dispatch that was taken from its consumer.
struct Recovery {
    id: Uuid,
    action: Option<Uuid>,
    owner_id: i32,
    attempt: i32,
    status: &'static str,
    claimed_by: Option<String>,
    enqueued: Enqueued,
}

impl Recovery {
    fn requeued(one: &Requeued) -> Recovery {
        Recovery {
            id: one.dispatch.id,
            action: one.dispatch.action,
            owner_id: one.owner_id,
            attempt: one.attempt,
            status: "pending",
            claimed_by: one.claimed_by.clone(),
            enqueued: one.enqueued.clone(),
        }
    }

    fn finished(one: &Finished, end: End) -> Recovery {
        Recovery {
            id: one.id,
            action: one.action,
            owner_id: one.owner_id,
            attempt: one.attempt,
            status: end.as_str(),
            claimed_by: one.claimed_by.clone(),
            enqueued: one.enqueued.clone(),
        }
    }
}

fn record(recoveries: &[Recovery], reason: &str, actor: &Actor) {
    if recoveries.is_empty() {
        return;
    }
    let detail = |one: &Recovery| {
        let detail = json!({
            "reason": reason,
            "attempt": one.attempt,
            "status": one.status,
            "claimed_by": one.claimed_by,
        });
        one.enqueued.named_in(detail).to_string()
    };
    let actions: Vec<_> = recoveries
        .iter()
        .map(|one| one.action.map(pg_uuid))
        .collect();
    let owners: Vec<i32> = recoveries.iter().map(|one| one.owner_id).collect();
    let details: Vec<String> = recoveries.iter().map(detail).collect();
    let arguments = [
        pg_uuids(recoveries.iter().map(|one| one.id)).into(),
        actions.into(),
        owners.into(),
        details.into(),
        actor.name.as_str().into(),
        actor.login.as_deref().into(),
        partition::current().into(),
    ];
    RECORD_RECOVERIES.with(|query| query.execute(&arguments));
}

/// `recur_internal.expire_leases(at, "limit")`: what the maintenance worker does, callable where none runs.
#[pg_extern(sql = false)]
fn expire_leases(at: TimestampWithTimeZone, limit: i32) -> i64 {
    let now = time::instant("at", at).or_raise();
    let _pins = PlannerPins::set();
    engine::as_engine(|| expire(now, limit, None)) as i64
}

/// `recur.recover(max_age)`.
#[pg_extern(sql = false)]
fn recover(max_age: Option<Interval>) -> i64 {
    let is_valid = |age: &Interval| interval::parts(age).compare(Span::ZERO).is_ge();
    let Some(max_age) = max_age.filter(is_valid) else {
        let shown = max_age.map_or("NULL".to_owned(), interval::text);
        SqlError::invalid_argument("max_age", &shown, "must be zero or longer")
            .with_hint(
                "Runs without a sign of life for that long are given up; choose one that is longer than any lease.",
            )
            .raise()
    };
    let actor = Actor::current();
    let _pins = PlannerPins::set();
    engine::as_engine(|| give_up_abandoned(max_age, &actor)) as i64
}
