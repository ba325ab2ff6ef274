//! Announcements of dispatches: the messages of recur-core, sent with NOTIFY.

use crate::commands::armed;
use crate::pg::index_scan::{self, LowerBound};
use crate::pg::query::{Row, fragment, queries};
use crate::pg::{subtransaction, time};
use crate::runtime::stats::Lateness;
use crate::runtime::{clock, installation, notify_queue, settings, wakeup};
use chrono::{DateTime, Utc};
use pgrx::prelude::*;
use pgrx::{direct_function_call, pg_sys};
use recur_core::notify::{self, Announcement, Group, Notification};
use uuid::Uuid;

queries! {
    NEWLY_AVAILABLE = "queue/queries/newly_available.sql" {announced: ANNOUNCED_COLUMNS}
        (TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID);
    COUNT_NEWLY_AVAILABLE = "queue/queries/count_newly_available.sql" (TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID);
}

type Instant = DateTime<Utc>;

/// The columns that [`Announceable::read`] reads.
pub const ANNOUNCED_COLUMNS: &str = fragment!("queue/queries/announced_columns.sql");

/// What an announcement says of a dispatch.
pub struct Announceable {
    pub id: Uuid,
    pub action: Option<Uuid>,
    scheduled_at: Option<Instant>,
    namespace: String,
    tenant: String,
    pub provider: String,
    action_type: String,
    pub channel: Option<String>,
}

impl Announceable {
    /// Reads the first columns of a row, which are [`ANNOUNCED_COLUMNS`].
    pub fn read(row: &Row) -> Announceable {
        Announceable {
            id: row.uuid(1),
            action: row.optional_uuid(2),
            scheduled_at: row.instant(3),
            namespace: row.required(4),
            tenant: row.required(5),
            provider: row.required(6),
            action_type: row.required(7),
            channel: row.get(8),
        }
    }

    /// None if the occurrence is no point in time, such as `infinity`, which only a change by hand can make it.
    pub fn announcement(&self) -> Option<Announcement<'_>> {
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

/// Announces dispatches that are available: each by itself, or, if there are many, counted by channel and provider.
pub fn announce(announcements: &[Announcement]) {
    if announcements.is_empty() {
        return;
    }
    wake_executors();
    if !notify_queue::has_room() {
        return;
    }
    let channel = settings::notify_channel();
    for message in notify::encode(
        announcements,
        &channel,
        settings::notify_each_max(),
        settings::notify_detail(),
    ) {
        send(&message);
    }
}

/// Announces dispatches by count: (channel, provider, count).
pub fn announce_counts<'a>(counts: impl IntoIterator<Item = (Option<&'a str>, &'a str, i64)>) {
    wake_executors();
    if !notify_queue::has_room() {
        return;
    }
    let channel = settings::notify_channel();
    for message in notify::encode_counts(counts.into_iter().collect::<Vec<_>>(), &channel) {
        send(&message);
    }
}

/// There may be something for the database itself to run, or to stop.
pub fn wake_executors() {
    if armed::any() {
        wakeup::work_on_commit();
    }
}

fn send(message: &Notification) {
    let arguments = [
        message.channel.into_datum(),
        message.payload.as_str().into_datum(),
    ];
    // SAFETY: pg_notify takes two texts.
    unsafe { direct_function_call::<()>(pg_sys::pg_notify, &arguments) };
}

/// When the next dispatch becomes available that is not available yet.
pub fn next_available(now: Instant) -> Option<Instant> {
    let later = installation::find()?.live_dispatches_later;
    index_scan::first(later, LowerBound::After(now))
}

/// This many dispatches are counted in a moment. Of a larger herd, these are announced first, and the rest after it has
/// been counted: to count 100,000 takes a tenth of a second.
const COUNTED_AT_ONCE: i64 = 2_000;

/// What has been announced.
pub struct Announced {
    pub lateness: Vec<Lateness>,
    /// There is more: the groups of which only a part was announced.
    pub in_part: Option<Vec<Group>>,
}

/// Announces what has become available after one instant and up to another.
pub fn newly_available(after: Instant, until: Instant) -> Announced {
    let each_max = settings::notify_each_max();
    let found = find_newly_available(after, until, each_max as i64 + 1);
    let clock = clock::now();
    if found.len() <= each_max {
        let scheduled = found.iter().filter(|one| one.is_scheduled);
        let lateness = scheduled.map(|one| late(clock, one.since, 1)).collect();
        let announcements: Vec<Announcement> = found
            .iter()
            .filter_map(Available::announcement_or_warning)
            .collect();
        let channel = settings::notify_channel();
        send_or_warn(notify::encode(
            &announcements,
            &channel,
            each_max,
            settings::notify_detail(),
        ));
        return Announced {
            lateness,
            in_part: None,
        };
    }
    let counted = count_newly_available(after, until, Some(COUNTED_AT_ONCE));
    let lateness = announce_groups(&counted);
    let number: i64 = counted.iter().map(|group| group.dispatches).sum();
    Announced {
        lateness,
        in_part: (number >= COUNTED_AT_ONCE).then_some(counted),
    }
}

/// Announces the rest of a herd, of which these groups were announced.
pub fn rest_of_newly_available(after: Instant, until: Instant, announced: &[Group]) -> Announced {
    let counted = notify::unannounced(count_newly_available(after, until, None), announced);
    Announced {
        lateness: announce_groups(&counted),
        in_part: None,
    }
}

fn announce_groups(counted: &[Group]) -> Vec<Lateness> {
    let clock = clock::now();
    let channel = settings::notify_channel();
    let counts = counted.iter().map(|group| {
        let channel = group.channel.as_deref();
        (channel, group.provider.as_str(), group.dispatches)
    });
    send_or_warn(notify::encode_counts(counts, &channel));
    let scheduled = counted.iter().filter(|group| group.scheduled > 0);
    scheduled
        .filter_map(|group| Some(late(clock, group.since?, group.scheduled.unsigned_abs())))
        .collect()
}

/// Sends messages. A message that can't be sent, for instance because of its channel, does not stop the others.
fn send_or_warn(messages: Vec<Notification>) {
    if messages.is_empty() {
        return;
    }
    wake_executors();
    if !notify_queue::has_room() {
        return;
    }
    let failed =
        subtransaction::attempt_in_parts(&messages, usize::MAX, |part| part.iter().for_each(send));
    for (message, failure) in failed {
        warning!(
            "pg_recur dispatcher: announcement failed channel={:?} payload={} sqlstate={} message={:?}",
            message.channel,
            message.payload,
            failure.sqlstate,
            failure.message
        );
    }
}

/// A dispatch that has become available.
struct Available {
    dispatch: Announceable,
    /// True for the first attempt at an occurrence.
    is_scheduled: bool,
    since: Instant,
}

impl Available {
    fn read(row: &Row) -> Available {
        Available {
            dispatch: Announceable::read(row),
            is_scheduled: row.required(9),
            since: row.required_instant(10),
        }
    }

    fn announcement_or_warning(&self) -> Option<Announcement<'_>> {
        let announcement = self.dispatch.announcement();
        if announcement.is_none() {
            warning!(
                "pg_recur dispatcher: announcement failed dispatch={} message=\"scheduled_at is no point in time\"",
                self.dispatch.id
            );
        }
        announcement
    }
}

fn find_newly_available(after: Instant, until: Instant, limit: i64) -> Vec<Available> {
    let arguments = [
        time::timestamptz(after).into(),
        time::timestamptz(until).into(),
        limit.into(),
    ];
    NEWLY_AVAILABLE.with(|query| query.rows(&arguments, Available::read))
}

fn count_newly_available(after: Instant, until: Instant, limit: Option<i64>) -> Vec<Group> {
    let arguments = [
        time::timestamptz(after).into(),
        time::timestamptz(until).into(),
        limit.into(),
    ];
    COUNT_NEWLY_AVAILABLE.with(|query| {
        query.rows(&arguments, |row| Group {
            channel: row.get(1),
            provider: row.required(2),
            dispatches: row.required(3),
            scheduled: row.required(4),
            since: row.instant(5),
        })
    })
}

fn late(clock: Instant, since: Instant, dispatches: u64) -> Lateness {
    Lateness {
        micros: (clock - since).num_microseconds().unwrap_or(i64::MAX),
        dispatches,
    }
}
