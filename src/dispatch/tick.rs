//! `recur.tick`: what the dispatcher does, callable from anywhere.

use super::batch::{self, Scope, Timers};
use super::duplicates::KeyLocks;
use super::write::Ended;
use crate::alerts::alarms;
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::planner::PlannerPins;
use crate::pg::time;
use crate::recovery::leases;
use crate::requests::keys;
use crate::runtime::{clock, engine, home, shared, stats, wakeup};
use chrono::{DateTime, Utc};
use pgrx::datum::{TimestampWithTimeZone, Uuid as PgUuid};
use pgrx::iter::TableIterator;
use pgrx::{name, prelude::*};
use recur_core::dispatch_id;
use uuid::Uuid;

/// One call dispatches about this many occurrences and leaves the rest to the next: all of it is one transaction.
const MOST_PER_TICK: i64 = 100_000;
const LEASES_AT_ONCE: i32 = 1000;

/// Dispatches everything that is due at `at`, batch by batch, in the caller's transaction.
#[pg_extern(sql = false)]
fn tick(
    at: TimestampWithTimeZone,
) -> TableIterator<
    'static,
    (
        name!(dispatched, i64),
        name!(skipped, i64),
        name!(ended, i64),
        name!(failed, i64),
    ),
> {
    let now = time::instant("at", at).and_then(not_ahead).or_raise();
    home::check().or_raise();
    let _pins = PlannerPins::set();
    let counts = engine::as_engine(|| {
        // The worker that would do it holds in a test database.
        if clock::is_for_tests() {
            while leases::expire(now, LEASES_AT_ONCE, None) > 0 {
                check_for_interrupts!();
            }
        }
        let counts = dispatch(now);
        // Where the server has no workers, nothing else looks at alarms, and forgets requests. What has just been
        // dispatched is not late.
        if clock::is_for_tests() || !shared::available() {
            while alarms::check(now).is_some_and(|next| next <= now) {
                check_for_interrupts!();
            }
            keys::remove_forgotten(now);
        }
        counts
    });
    let [dispatched, skipped, ended, failed] = counts;
    TableIterator::once((dispatched, skipped, ended, failed))
}

/// Returns how many were dispatched, skipped, ended, failed.
fn dispatch(now: DateTime<Utc>) -> [i64; 4] {
    let mut counts = [0; 4];
    let mut from = DateTime::UNIX_EPOCH;
    let mut is_still_due = false;
    // Actions for which no key is left are left to the next call.
    let keys = KeyLocks::new();
    loop {
        check_for_interrupts!();
        let batch = batch::run(&Scope {
            now,
            timers: Timers::Due { from },
            keys: &keys,
        });
        if batch.last.is_some() {
            stats::count_batch(batch.counts(), &batch.lateness);
        }
        if let Some(later) = batch.available_later {
            wakeup::available_on_commit(time::to_micros(later));
        }
        batch.ended.iter().for_each(Ended::log);
        counts[0] += batch.dispatched as i64;
        counts[1] += batch.skipped as i64;
        counts[2] += batch.ended.len() as i64;
        counts[3] += batch.failed as i64;
        is_still_due |= batch.is_still_due;
        if counts[0] >= MOST_PER_TICK {
            return counts;
        }
        // From where this batch ended: within this transaction, its advances are still in the way.
        from = match batch.last_due_at() {
            Some(last) if batch.is_full => last,
            _ if is_still_due => DateTime::UNIX_EPOCH,
            _ => return counts,
        };
        is_still_due &= batch.is_full;
    }
}

/// Dispatching ahead of time would hand out occurrences that have not come, and advance every schedule past them: only
/// a test database may.
fn not_ahead(at: DateTime<Utc>) -> Result<DateTime<Utc>, SqlError> {
    if at <= clock::now() || clock::is_for_tests() {
        return Ok(at);
    }
    let error = SqlError::invalid_argument("at", &time::shown(at), "must not lie in the future");
    Err(error.with_hint(
        "To test what happens later, mark a new database with recur.mark_test_database(): its clock can be set.",
    ))
}

/// `recur_internal.dispatch_id(action_id, scheduled_at)`: the id of an occurrence's dispatch.
#[pg_extern(sql = false, name = "dispatch_id")]
fn dispatch_id_of(action_id: PgUuid, scheduled_at: TimestampWithTimeZone) -> PgUuid {
    let occurrence = time::instant("scheduled_at", scheduled_at).or_raise();
    let action = Uuid::from_bytes(*action_id.as_bytes());
    PgUuid::from_bytes(dispatch_id::of_occurrence(action, occurrence).into_bytes())
}
