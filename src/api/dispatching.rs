//! `recur.tick`: what the worker does, callable from anywhere.

use crate::dispatch::id;
use crate::dispatch::tick::{self, Order, Scope};
use crate::pg::error::OrRaise;
use crate::pg::time;
use crate::{stats, wake};
use chrono::DateTime;
use pgrx::datum::{TimestampWithTimeZone, Uuid};
use pgrx::iter::TableIterator;
use pgrx::{name, prelude::*};

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
    let now = time::instant("at", at).or_raise();
    let (mut dispatched, mut skipped, mut ended, mut failed) = (0, 0, 0, 0);
    let mut scope = Scope {
        now,
        from: DateTime::UNIX_EPOCH,
        order: Order::Oldest,
    };
    let mut again = false;
    loop {
        check_for_interrupts!();
        let batch = tick::run_batch(&scope);
        stats::count_tick(&batch);
        if let Some(later) = batch.available_later {
            wake::available_on_commit(time::to_micros(later));
        }
        dispatched += batch.dispatched as i64;
        skipped += batch.skipped as i64;
        ended += batch.ended.len() as i64;
        failed += batch.failed as i64;
        again |= batch.still_due;
        // From where this batch came to: what it has moved on is, within this transaction, still in the way.
        scope.from = match batch.last_due_at() {
            Some(last) if batch.full => last,
            _ if again => DateTime::UNIX_EPOCH,
            _ => break,
        };
        again &= batch.full;
    }
    TableIterator::once((dispatched, skipped, ended, failed))
}

/// `recur._new_id(at)`: an id for a dispatch that belongs to no occurrence. Sorted by time as the others are.
#[pg_extern(sql = false)]
fn new_id(at: TimestampWithTimeZone) -> Uuid {
    let instant = time::instant("at", at).or_raise();
    Uuid::from_bytes(id::random(instant).into_bytes())
}

/// `recur._dispatch_id(action_id, scheduled_at)`.
#[pg_extern(sql = false)]
fn dispatch_id(action_id: Uuid, scheduled_at: TimestampWithTimeZone) -> Uuid {
    let occurrence = time::instant("scheduled_at", scheduled_at).or_raise();
    let action = uuid::Uuid::from_bytes(*action_id.as_bytes());
    Uuid::from_bytes(id::of_occurrence(action, occurrence).into_bytes())
}

/// `recur._is_id_of(id, action_id, scheduled_at)`: false, too, for an instant that can't be announced.
#[pg_extern(sql = false)]
fn is_id_of(
    id: Option<Uuid>,
    action_id: Option<Uuid>,
    scheduled_at: Option<TimestampWithTimeZone>,
) -> bool {
    let uuid = |id: Uuid| uuid::Uuid::from_bytes(*id.as_bytes());
    let instant = scheduled_at.and_then(|at| time::from_micros(at.into()));
    let (Some(id), Some(instant)) = (id, instant) else {
        return false;
    };
    id::belongs_to(uuid(id), action_id.map(uuid), instant)
}
