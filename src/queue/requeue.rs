//! Running dispatches that become pending again: retries, releases, expired leases. Everything here runs as the engine.

use super::announce;
use crate::pg::query::{pg_uuids, queries};
use crate::pg::time;
use crate::runtime::wakeup;
use chrono::{DateTime, Utc};
use recur_core::notify::Announcement;
use uuid::Uuid;

queries! {
    REQUEUE = "queue/queries/requeue.sql" (UUIDARRAYOID, TIMESTAMPTZARRAYOID, TEXTARRAYOID);
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
    pub id: Uuid,
    pub attempt: i32,
    pub available_at: DateTime<Utc>,
    pub action: Option<Uuid>,
    scheduled_at: Option<DateTime<Utc>>,
    namespace: String,
    tenant: String,
    provider: String,
    action_type: String,
    channel: Option<String>,
    pub owner_id: i32,
    pub claimed_by: Option<String>,
}

/// Makes dispatches, which the caller has locked, pending again.
pub fn requeue(dispatches: &[Requeue]) -> Vec<Requeued> {
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
    REQUEUE.with(|query| {
        query.rows(&arguments, |row| Requeued {
            id: row.uuid(1),
            attempt: row.required(2),
            available_at: row.required_instant(3),
            action: row.optional_uuid(4),
            scheduled_at: row.instant(5),
            namespace: row.required(6),
            tenant: row.required(7),
            provider: row.required(8),
            action_type: row.required(9),
            channel: row.get(10),
            owner_id: row.required(11),
            claimed_by: row.get(12),
        })
    })
}

/// Announces those that are available, and lets the dispatcher announce the others when they are.
pub fn announce_each(requeued: &[Requeued], now: DateTime<Utc>) {
    let (available, later): (Vec<_>, Vec<_>) =
        requeued.iter().partition(|one| one.available_at <= now);
    let announcements: Vec<Announcement> = available
        .into_iter()
        .filter_map(Requeued::announcement)
        .collect();
    announce::announce(&announcements);
    for one in later {
        wakeup::available_on_commit(time::to_micros(one.available_at));
    }
}

/// Announces how many there are, by channel and provider.
pub fn announce_counts(requeued: &[Requeued]) {
    announce::announce_counts(
        requeued
            .iter()
            .map(|one| (one.channel.as_deref(), one.provider.as_str(), 1)),
    );
}

impl Requeued {
    fn announcement(&self) -> Option<Announcement<'_>> {
        Some(Announcement {
            id: self.id,
            action_id: self.action,
            scheduled_at: self.scheduled_at?,
            namespace: &self.namespace,
            tenant: &self.tenant,
            provider: &self.provider,
            action_type: &self.action_type,
            channel: self.channel.as_deref(),
        })
    }
}
