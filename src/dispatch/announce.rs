//! What listeners hear of dispatches.
//!
//! One message a dispatch, or, when there are more than `recur.notify_each_max`, one a channel and provider, or two of a herd.
//! Ids and routing only: a payload could be secret, or too long.

use super::later::{self, Announced, AnnouncedGroup, NewlyAvailable};
use super::store::{self, Notifications};
use super::told;
use crate::guc;
use crate::pg::{subtransaction, time};
use chrono::{DateTime, SecondsFormat, Utc};
use pgrx::prelude::*;
use pgrx::spi::SpiResult;
use serde_json::json;
use std::collections::BTreeMap;
use uuid::Uuid;

/// NOTIFY refuses 8000 bytes and more.
const LONGEST_MESSAGE: usize = 7_999;

/// One message for each.
pub fn messages(announced: impl IntoIterator<Item = Announced>) -> Notifications {
    let mut notifications = Notifications::default();
    for dispatch in announced {
        let payload = message(&dispatch);
        let channel = dispatch.channel.unwrap_or_else(guc::notify_channel);
        notifications.channels.push(channel);
        notifications.payloads.push(payload);
    }
    notifications
}

/// One message for each channel and provider, from (channel, provider, count).
pub fn counts<'a>(
    announced: impl IntoIterator<Item = (Option<&'a str>, &'a str, i64)>,
) -> Notifications {
    let default_channel = guc::notify_channel();
    let mut counts = BTreeMap::<(&str, &str), i64>::new();
    for (channel, provider, count) in announced {
        let channel = channel.unwrap_or(&default_channel);
        *counts.entry((channel, provider)).or_default() += count;
    }
    let mut notifications = Notifications::default();
    for ((channel, provider), count) in counts {
        notifications.channels.push(channel.to_owned());
        notifications
            .payloads
            .push(json!({ "provider": provider, "count": count }).to_string());
    }
    notifications
}

fn message(dispatch: &Announced) -> String {
    let mut message = json!({
        "id": dispatch.id.to_string(),
        "action_id": dispatch.action.map(|id| id.to_string()),
        "scheduled_at": dispatch.scheduled_at.to_rfc3339_opts(SecondsFormat::AutoSi, true),
        "namespace": dispatch.namespace,
        "tenant": dispatch.tenant,
        "provider": dispatch.provider,
        "action_type": dispatch.action_type,
    });
    let text = message.to_string();
    if text.len() <= LONGEST_MESSAGE {
        return text;
    }
    // Four names of 255 characters can be longer than that. Whoever needs them has the id.
    if let Some(fields) = message.as_object_mut() {
        fields.retain(|key, _| matches!(key.as_str(), "id" | "action_id" | "scheduled_at"));
    }
    message.to_string()
}

/// So many scheduled dispatches were so many microseconds late.
pub struct Lateness {
    pub micros: i64,
    pub dispatches: u64,
}

/// So many are counted in a moment. Where there are more, those who listen hear of these first, and of the rest when it has been
/// counted: a herd of 100,000 takes a tenth of a second.
const COUNTED_AT_ONCE: i64 = 2_000;

/// What has been announced.
pub struct Told {
    pub lateness: Vec<Lateness>,
    /// There is more: these are the groups of which only a part has been told.
    pub in_part: Option<Vec<AnnouncedGroup>>,
}

/// Announces what has become available after one instant and up to another.
pub fn newly_available(after: DateTime<Utc>, until: DateTime<Utc>) -> SpiResult<Told> {
    let each_max = guc::notify_each_max();
    let found = later::newly_available(after, until, each_max as i64 + 1)?;
    let clock = time::now();
    if found.len() <= each_max {
        let found = without_unreadable(found);
        let scheduled = found.iter().filter(|(_, is_scheduled, _)| *is_scheduled);
        let lateness = scheduled.map(|(_, _, since)| late(clock, *since, 1));
        let lateness = lateness.collect();
        send(messages(found.into_iter().map(|(dispatch, _, _)| dispatch)));
        return Ok(Told {
            lateness,
            in_part: None,
        });
    }
    let counted = later::count_newly_available(after, until, Some(COUNTED_AT_ONCE))?;
    let lateness = tell(&counted);
    let number: i64 = counted.iter().map(|group| group.dispatches).sum();
    Ok(Told {
        lateness,
        in_part: (number >= COUNTED_AT_ONCE).then_some(counted),
    })
}

/// Announces the rest.
pub fn rest_of_newly_available(
    after: DateTime<Utc>,
    until: DateTime<Utc>,
    told: &[AnnouncedGroup],
) -> SpiResult<Told> {
    let counted = told::untold(later::count_newly_available(after, until, None)?, told);
    Ok(Told {
        lateness: tell(&counted),
        in_part: None,
    })
}

fn tell(counted: &[AnnouncedGroup]) -> Vec<Lateness> {
    let clock = time::now();
    send(counts(counted.iter().map(|group| {
        let channel = group.channel.as_deref();
        (channel, group.provider.as_str(), group.dispatches)
    })));
    let scheduled = counted.iter().filter(|group| group.scheduled > 0);
    scheduled
        .filter_map(|group| Some(late(clock, group.since?, group.scheduled.unsigned_abs())))
        .collect()
}

/// Sends them, but for those that can't be sent, such as to a channel whose name is too long: they keep no other from being sent.
fn send(notifications: Notifications) {
    let all = notifications.into_pairs();
    if all.is_empty() {
        return;
    }
    let failed = subtransaction::attempt_in_parts(&all, usize::MAX, |part| {
        store::notify(Notifications::from_pairs(part))
            .unwrap_or_else(|error| pgrx::error!("pg_recur: {error}"));
    });
    for ((channel, payload), failure) in failed {
        warning!(
            "pg_recur dispatcher: announcement failed channel={channel:?} payload={payload} sqlstate={} message={:?}",
            failure.sqlstate,
            failure.message
        );
    }
}

fn without_unreadable(found: Vec<Result<NewlyAvailable, Uuid>>) -> Vec<NewlyAvailable> {
    let unless_unreadable = |one: Result<NewlyAvailable, Uuid>| {
        one.inspect_err(|id| {
            warning!("pg_recur dispatcher: announcement failed dispatch={id} message=\"scheduled_at is no point in time\"");
        })
        .ok()
    };
    found.into_iter().filter_map(unless_unreadable).collect()
}

fn late(clock: DateTime<Utc>, since: DateTime<Utc>, dispatches: u64) -> Lateness {
    Lateness {
        micros: (clock - since).num_microseconds().unwrap_or(i64::MAX),
        dispatches,
    }
}
