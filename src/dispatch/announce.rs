//! What listeners hear of dispatches.
//!
//! One message a dispatch, or, when there are more than `recur.notify_each_max`, one a channel and provider. Ids and
//! routing only: a payload could be secret, or too long.

use super::later::{self, Announced};
use super::store::{self, Notifications};
use crate::guc;
use crate::pg::time;
use chrono::{DateTime, SecondsFormat, Utc};
use pgrx::spi::SpiResult;
use serde_json::json;
use std::collections::BTreeMap;

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

/// Announces what has become available after one instant and up to another, and says how late that was.
pub fn newly_available(after: DateTime<Utc>, until: DateTime<Utc>) -> SpiResult<Vec<Lateness>> {
    let each_max = guc::notify_each_max();
    let found = later::newly_available(after, until, each_max as i64 + 1)?;
    let clock = time::now();
    let late = |since: DateTime<Utc>, dispatches| Lateness {
        micros: (clock - since).num_microseconds().unwrap_or(i64::MAX),
        dispatches,
    };
    if found.len() <= each_max {
        let scheduled = found.iter().filter(|(_, is_scheduled, _)| *is_scheduled);
        let lateness = scheduled.map(|(_, _, since)| late(*since, 1)).collect();
        store::notify(messages(found.into_iter().map(|(dispatch, _, _)| dispatch)))?;
        return Ok(lateness);
    }
    let counted = later::count_newly_available(after, until)?;
    store::notify(counts(counted.iter().map(|group| {
        let channel = group.channel.as_deref();
        (channel, group.provider.as_str(), group.dispatches)
    })))?;
    let lateness = counted
        .iter()
        .filter_map(|group| Some(late(group.since?, group.scheduled.unsigned_abs())));
    Ok(lateness.collect())
}
