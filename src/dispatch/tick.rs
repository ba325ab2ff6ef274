//! One batch: lock, decide, write, notify. All in the caller's transaction.

use super::decide::{self, Decision, Due, Then};
use super::id;
use super::store::{
    self, Announced, LockedTimer, NewDispatches, NewEvents, Notifications, StoredDefinition,
};
use crate::guc;
use chrono::{DateTime, SecondsFormat, Utc};
use pgrx::spi::SpiResult;
use recurrence::{Bounds, OnFold, OnGap, Recurrence, ScheduleCache, Zone};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;

/// What one batch did.
pub struct Tick {
    /// The instant it worked for.
    pub now: DateTime<Utc>,
    pub dispatched: usize,
    pub ended: usize,
    pub failed: usize,
    /// The batch was full: there may be more that is due.
    pub more: bool,
    /// When anything is due next.
    pub next_instant: Option<DateTime<Utc>>,
}

/// Runs one batch; an SQL error is raised as such.
pub fn run_batch(now: DateTime<Utc>) -> Tick {
    match try_run_batch(now, guc::batch_size()) {
        Ok(tick) => tick,
        Err(error) => pgrx::error!("pg_recur: {error}"),
    }
}

fn try_run_batch(now: DateTime<Utc>, batch_size: i64) -> SpiResult<Tick> {
    let locked = store::lock_due(now, batch_size)?;
    let more = locked.len() as i64 == batch_size;
    let mut tick = Tick {
        now,
        dispatched: 0,
        ended: 0,
        failed: 0,
        more,
        next_instant: None,
    };
    if !locked.is_empty() {
        let definitions =
            store::read_definitions(locked.iter().map(|timer| timer.action).collect())?;
        let outcome = decide_all(&locked, &definitions, now);
        tick.ended = outcome.ended();
        tick.failed = outcome.errors.len();
        let announced = store::insert_dispatches(outcome.new_dispatches())?;
        tick.dispatched = announced.len();
        store::advance_timers(&outcome.decisions)?;
        store::record_errors(&outcome.errors, now)?;
        store::record_events(outcome.events())?;
        store::notify(notifications(&announced, &definitions))?;
    }
    if !more {
        tick.next_instant = store::next_instant()?;
    }
    Ok(tick)
}

#[derive(Default)]
struct Outcome {
    decisions: Vec<(Uuid, Decision)>,
    /// Actions that can't be evaluated, and why.
    errors: Vec<(Uuid, String)>,
}

impl Outcome {
    fn ended(&self) -> usize {
        let ended = |(_, decision): &&(Uuid, Decision)| matches!(decision.then, Then::End(_));
        self.decisions.iter().filter(ended).count()
    }

    fn events(&self) -> NewEvents {
        let mut events = NewEvents::default();
        for (action, decision) in &self.decisions {
            if let Then::End(reason) = decision.then {
                events.actions.push(*action);
                events.kinds.push(reason.event_kind());
                events.details.push(json!({}).to_string());
            }
        }
        for (action, message) in &self.errors {
            events.actions.push(*action);
            events.kinds.push("action.error");
            events.details.push(json!({ "error": message }).to_string());
        }
        events
    }

    fn new_dispatches(&self) -> NewDispatches {
        let mut new = NewDispatches::default();
        for (action, decision) in &self.decisions {
            if let Some(occurrence) = decision.fire {
                new.ids.push(id::of_occurrence(*action, occurrence));
                new.actions.push(*action);
                new.occurrences.push(occurrence);
            }
        }
        new
    }
}

fn decide_all(
    locked: &[LockedTimer],
    definitions: &[StoredDefinition],
    now: DateTime<Utc>,
) -> Outcome {
    let definitions: HashMap<Uuid, &StoredDefinition> = definitions
        .iter()
        .map(|definition| (definition.action, definition))
        .collect();
    let mut outcome = Outcome::default();
    for timer in locked {
        // A definition that is gone takes its timer with it: nothing to do.
        let Some(definition) = definitions.get(&timer.action) else {
            continue;
        };
        match recurrence_of(definition) {
            Ok(recurrence) => {
                let due = Due {
                    recurrence: &recurrence,
                    next_run_at: timer.next_run_at,
                    run_count: timer.run_count,
                    max_runs: definition.max_runs,
                    ends_at: definition.ends_at,
                };
                outcome
                    .decisions
                    .push((timer.action, decide::decide(&due, now)));
            }
            Err(message) => outcome.errors.push((timer.action, message)),
        }
    }
    outcome
}

/// Far more schedules than an application has, at about a kilobyte each.
const SCHEDULES_KEPT: usize = 10_000;

thread_local! {
    /// A million actions share a few schedules: each text is parsed once.
    static SCHEDULES: RefCell<ScheduleCache> = RefCell::new(ScheduleCache::new(SCHEDULES_KEPT));
}

fn recurrence_of(definition: &StoredDefinition) -> Result<Recurrence, String> {
    let schedule = SCHEDULES
        .with_borrow_mut(|cache| cache.parse(&definition.schedule))
        .map_err(|error| error.to_string())?;
    let zone = Zone::parse(&definition.timezone).map_err(|error| error.to_string())?;
    let on_gap: OnGap = definition
        .on_dst_gap
        .parse()
        .map_err(|_| "unknown on_dst_gap")?;
    let on_fold: OnFold = definition
        .on_dst_fold
        .parse()
        .map_err(|_| "unknown on_dst_fold")?;
    // The dispatcher counts runs itself: max_runs counts what was dispatched, not what was due.
    let bounds = Bounds {
        starts_at: definition.starts_at,
        ends_at: definition.ends_at,
        max_runs: None,
    };
    Recurrence::new(schedule, zone, bounds, on_gap, on_fold).map_err(|error| error.to_string())
}

/// One message a dispatch, or, of a batch larger than `recur.notify_each_max`, one a channel and provider. Ids and
/// routing only: a payload could be secret, or too long.
fn notifications(announced: &[Announced], definitions: &[StoredDefinition]) -> Notifications {
    let default_channel = guc::notify_channel();
    let channels: HashMap<Uuid, &str> = definitions
        .iter()
        .filter_map(|definition| Some((definition.action, definition.notify_channel.as_deref()?)))
        .collect();
    let channel_of = |dispatch: &Announced| {
        *channels
            .get(&dispatch.action)
            .unwrap_or(&default_channel.as_str())
    };
    let mut notifications = Notifications::default();
    let mut add = |channel: &str, payload: Value| {
        notifications.channels.push(channel.to_owned());
        notifications.payloads.push(payload.to_string());
    };
    if announced.len() > guc::notify_each_max() {
        let mut counts = BTreeMap::<(&str, &str), usize>::new();
        for dispatch in announced {
            *counts
                .entry((channel_of(dispatch), &dispatch.provider))
                .or_default() += 1;
        }
        for ((channel, provider), count) in counts {
            add(channel, json!({ "provider": provider, "count": count }));
        }
        return notifications;
    }
    for dispatch in announced {
        let payload = json!({
            "id": dispatch.id.to_string(),
            "action_id": dispatch.action.to_string(),
            "scheduled_at": dispatch.scheduled_at.to_rfc3339_opts(SecondsFormat::AutoSi, true),
            "namespace": dispatch.namespace,
            "tenant": dispatch.tenant,
            "provider": dispatch.provider,
            "action_type": dispatch.action_type,
        });
        add(channel_of(dispatch), payload);
    }
    notifications
}
