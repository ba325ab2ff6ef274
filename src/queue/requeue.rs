//! Running dispatches that become pending again: retries, releases, expired leases. Everything here runs as the engine.

use super::announce::{self, ANNOUNCED_COLUMNS, Announceable};
use super::outcomes::{self, Enqueued, SUBJECT_OF_ENQUEUED};
use crate::access::Actor;
use crate::history::events::{self, DispatchEvent};
use crate::pg::query::{fragment, pg_uuids, queries};
use crate::pg::time;
use crate::runtime::stats::{self, Outcomes};
use crate::runtime::wakeup;
use chrono::{DateTime, Utc};
use recur_core::event::EventKind;
use recur_core::notify::Announcement;
use serde_json::json;
use uuid::Uuid;

queries! {
    REQUEUE = "queue/queries/requeue.sql"
        {announced: ANNOUNCED_COLUMNS, kept_errors: fragment!("queue/queries/kept_errors.sql"),
         subject: SUBJECT_OF_ENQUEUED}
        (UUIDARRAYOID, TIMESTAMPTZARRAYOID, TEXTARRAYOID);
}

/// A running dispatch that is to be pending again.
pub struct Requeue<'a> {
    pub id: Uuid,
    pub available_at: DateTime<Utc>,
    /// Why the attempt failed; None for an attempt that was given back and does not count.
    pub reason: Option<&'a str>,
}

/// A dispatch that is pending again.
pub struct Requeued {
    pub dispatch: Announceable,
    pub attempt: i32,
    pub available_at: DateTime<Utc>,
    pub owner_id: i32,
    pub claimed_by: Option<String>,
    /// Which events are recorded, where that is not left to the setting.
    pub record_events: Option<String>,
    /// Why the attempt failed; None for one that was given back.
    pub error: Option<String>,
    pub enqueued: Enqueued,
}

/// Makes dispatches, which the caller has locked, pending again.
pub fn requeue(dispatches: &[Requeue], actor: &Actor) -> Vec<Requeued> {
    if dispatches.is_empty() {
        return Vec::new();
    }
    let available: Vec<_> = dispatches
        .iter()
        .map(|one| time::timestamptz(one.available_at))
        .collect();
    let reasons: Vec<Option<&str>> = dispatches.iter().map(|one| one.reason).collect();
    let arguments = [
        pg_uuids(dispatches.iter().map(|one| one.id)).into(),
        available.into(),
        reasons.into(),
    ];
    let requeued = REQUEUE.with(|query| {
        query.rows(&arguments, |row| Requeued {
            dispatch: Announceable::read(row),
            attempt: row.required(9),
            available_at: row.required_instant(10),
            owner_id: row.required(11),
            claimed_by: row.get(12),
            record_events: row.get(13),
            error: row.get(14),
            enqueued: Enqueued::read(row, 15),
        })
    });
    count(&requeued);
    record(&requeued, actor);
    requeued
}

fn count(requeued: &[Requeued]) {
    let failed = requeued.iter().filter(|one| one.error.is_some()).count();
    let count = |all: &mut Outcomes| {
        all.retried += failed as u64;
        all.released += (requeued.len() - failed) as u64;
    };
    stats::count_attempts_on_commit(count, std::iter::empty());
}

/// An attempt that was given back has not failed.
fn record(requeued: &[Requeued], actor: &Actor) {
    let recorded = requeued.iter().filter(|one| {
        one.error.is_some()
            && outcomes::is_recorded(one.record_events.as_deref(), EventKind::Retrying)
    });
    let events = recorded.map(|one| DispatchEvent {
        dispatch: one.dispatch.id,
        action: one.dispatch.action,
        owner_id: one.owner_id,
        detail: one.enqueued.named_in(json!({
            "attempt": one.attempt,
            "error": one.error,
            "available_at": time::rfc3339(one.available_at),
            "claimed_by": one.claimed_by,
        })),
    });
    events::record_dispatches(EventKind::Retrying, &events.collect::<Vec<_>>(), actor);
}

/// Announces dispatches that are available, and lets the dispatcher announce the others at their time.
pub fn announce_each(requeued: &[Requeued], now: DateTime<Utc>) {
    let (available, later): (Vec<_>, Vec<_>) =
        requeued.iter().partition(|one| one.available_at <= now);
    let announcements: Vec<Announcement> = available
        .into_iter()
        .filter_map(|one| one.dispatch.announcement())
        .collect();
    announce::announce(&announcements);
    for one in later {
        wakeup::available_on_commit(time::to_micros(one.available_at));
    }
}

/// Announces how many there are, by channel and provider.
pub fn announce_counts(requeued: &[Requeued]) {
    announce::announce_counts(requeued.iter().map(|one| {
        let dispatch = &one.dispatch;
        (dispatch.channel.as_deref(), dispatch.provider.as_str(), 1)
    }));
}
