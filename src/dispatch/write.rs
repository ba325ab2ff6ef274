//! Writes what was decided for the timers of a batch: dispatches, advanced timers, events and announcements.

use super::decisions::{self, Decided, Decisions};
use super::duplicates::{Found, KeyLocks};
use super::errors::ActionError;
use super::store::{self, Advance, Definition, LockedTimer, NewDispatch};
use crate::access::Actor;
use crate::alerts::contacts;
use crate::history::events::WorkerEvents;
use crate::history::lines;
use crate::queue::{announce, overlap};
use crate::runtime::stats::Lateness;
use crate::runtime::{clock, settings};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use recur_core::decide::{EndReason, Mode, Repeated, Then};
use recur_core::dispatch_id;
use recur_core::event::EventKind;
use recur_core::notify::Announcement;
use serde_json::json;
use std::collections::HashMap;
use uuid::Uuid;

type Instant = DateTime<Utc>;

/// Can an occurrence have a dispatch already?
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WritePath {
    /// Assumed not: if it has one, the batch fails and is repeated on the verified path.
    Optimistic,
    /// Checked.
    Verified,
}

/// What writing some of the timers did.
#[derive(Default)]
pub struct Written {
    pub dispatched: usize,
    pub skipped: u64,
    pub ended: Vec<Ended>,
    pub is_still_due: bool,
    pub left: usize,
    /// True if some were left because the transaction may lock no more keys.
    pub lacks_locks: bool,
    pub lateness: Vec<Lateness>,
    pub available_later: Option<Instant>,
    /// Actions that can't be evaluated, and why.
    pub errors: Vec<ActionError>,
}

/// An action that has ended, and why.
pub struct Ended {
    action: Uuid,
    name: String,
    reason: EndReason,
}

impl Ended {
    /// A line of the server's log.
    pub fn log(&self) {
        lines::ended(self.reason.event_kind(), self.action, &self.name);
    }
}

/// Decides what happens to locked timers, and writes it. Each of them fires at most `share` occurrences.
pub fn write(
    locked: &[LockedTimer],
    share: usize,
    now: Instant,
    mode: Mode,
    keys: &KeyLocks,
    path: WritePath,
) -> Written {
    let mut written = Written::default();
    if locked.is_empty() {
        return written;
    }
    let definitions = store::read_definitions(locked.iter().map(|timer| timer.action).collect());
    let Decisions {
        decided: decisions,
        duplicates,
    } = decisions::decide_all(
        locked,
        &definitions,
        share,
        now,
        mode,
        keys,
        &mut written.errors,
    );
    written.left = locked.len() - decisions.len();
    written.lacks_locks = duplicates.lacks_locks;

    let mut new = new_dispatches(&decisions, &definitions, now);
    let cancelling = decisions
        .iter()
        .filter(|(_, decision)| decision.cancels_previous);
    let actions = cancelling.map(|(timer, _)| timer.action).collect();
    overlap::cancel_previous(
        actions,
        now,
        "the next occurrence was due",
        &Actor::worker(),
    );
    insert(&mut new, locked, &definitions, path);
    duplicates.merge(None);
    written.dispatched = new.len();
    let clock = clock::now();
    written.lateness = lateness(&new, now, clock);
    let advances = advances(&decisions, &new, now, &mut written);
    name_ended(&mut written.ended);
    match path {
        WritePath::Optimistic => store::advance_locked_timers(&advances),
        WritePath::Verified => store::advance_timers(&advances),
    }
    record_events(&decisions, &duplicates, &new, &definitions, &mut written);
    let logged = new.iter();
    lines::dispatched(
        "schedule",
        logged.map(|one| (one.action, one.id, one.occurrence)),
    );
    let mended = decisions.iter().filter(|(timer, _)| timer.error_count > 0);
    let mended = mended.map(|(timer, _)| (timer.action, timer.error_count));
    contacts::mended(&mended.collect::<Vec<_>>());
    announce_available(&new, &definitions, clock);
    let later = new.iter().map(|one| one.available_at);
    written.available_later = later.filter(|at| *at > clock).min();
    written
}

/// Inserts the new dispatches and drops those whose occurrence has one already.
fn insert(
    new: &mut Vec<NewDispatch>,
    locked: &[LockedTimer],
    definitions: &HashMap<Uuid, Definition>,
    path: WritePath,
) {
    let timers = locked.iter();
    let repeated =
        Repeated::new(timers.map(|timer| (timer.action, timer.last_run_at, timer.next_run_at)));
    if path == WritePath::Optimistic && !repeated.is_possible() {
        store::insert_dispatches(new);
        return;
    }
    new.retain(|one| {
        let keeps_history = definitions
            .get(&one.action)
            .is_none_or(|definition| definition.keeps_history);
        !repeated.must_be_dropped(one.action, one.occurrence, keeps_history)
    });
    let inserted = store::insert_missing_dispatches(new);
    new.retain(|one| inserted.contains(&one.id));
    let suspects = new
        .iter()
        .filter(|one| repeated.is_suspect(one.action, one.occurrence));
    let removed = store::remove_repeated(suspects.map(|one| one.id).collect());
    new.retain(|one| !removed.contains(&one.id));
}

fn new_dispatches(
    decisions: &[Decided],
    definitions: &HashMap<Uuid, Definition>,
    now: Instant,
) -> Vec<NewDispatch> {
    let clock = clock::now();
    let mut new = Vec::with_capacity(decisions.len());
    for (timer, decision) in decisions {
        let Some(definition) = definitions.get(&timer.action) else {
            continue;
        };
        for occurrence in &decision.fire {
            let id = dispatch_id::of_occurrence(timer.action, *occurrence);
            // `recur.tick` may run ahead of the clock: what is due then is available at once.
            let available_at = match *occurrence <= now {
                true => clock.min(*occurrence),
                false => *occurrence,
            };
            let delay = definition
                .jitter
                .map_or(TimeDelta::zero(), |span| dispatch_id::jitter(id, span));
            new.push(NewDispatch {
                id,
                action: timer.action,
                occurrence: *occurrence,
                available_at: available_at + delay,
                definition: definition.tid,
            });
        }
    }
    new
}

fn lateness(new: &[NewDispatch], now: Instant, clock: Instant) -> Vec<Lateness> {
    new.iter()
        .filter(|one| one.occurrence <= now && one.available_at <= clock)
        .map(|one| Lateness {
            micros: (clock - one.occurrence)
                .num_microseconds()
                .unwrap_or(i64::MAX),
            dispatches: 1,
        })
        .collect()
}

fn advances(
    decisions: &[Decided],
    new: &[NewDispatch],
    now: Instant,
    written: &mut Written,
) -> Vec<Advance> {
    let mut runs = HashMap::<Uuid, (i32, Instant)>::with_capacity(decisions.len());
    for dispatch in new {
        let entry = runs
            .entry(dispatch.action)
            .or_insert((0, dispatch.occurrence));
        entry.0 += 1;
        entry.1 = entry.1.max(dispatch.occurrence);
    }
    let advance = |(timer, decision): &Decided| {
        let action = timer.action;
        let (next_run_at, due_at, ended_reason) = match decision.then {
            Then::Wait {
                next_run_at,
                due_at,
            } => (Some(next_run_at), Some(due_at), None),
            Then::Finish { due_at } => (None, Some(due_at), None),
            Then::End(reason) => {
                written.ended.push(Ended {
                    action,
                    name: String::new(),
                    reason,
                });
                (None, None, Some(reason.as_str()))
            }
        };
        written.is_still_due |= due_at.is_some_and(|due| due <= now);
        let fired = runs.get(&action);
        Advance {
            action,
            timer: timer.tid,
            runs: fired.map_or(0, |(count, _)| *count),
            fired: fired.map(|(_, latest)| *latest),
            next_run_at,
            due_at,
            ended_reason,
            next_ahead: decision.ahead.map(|ahead| ahead.first),
            ran_at: match (decision.ahead, decision.then) {
                (Some(ahead), _) => ahead.came_due.max(timer.ran_at),
                // That it waits for its last runs must show, even if it had none.
                (None, Then::Finish { .. }) => {
                    let latest = fired.map(|(_, latest)| *latest);
                    latest.max(timer.last_run_at).or(Some(now))
                }
                (None, _) => None,
            },
        }
    };
    decisions.iter().map(advance).collect()
}

/// Few actions end: the names of the others are not read.
fn name_ended(ended: &mut [Ended]) {
    let actions: Vec<Uuid> = ended.iter().map(|one| one.action).collect();
    let mut names = lines::names(&actions);
    for one in ended {
        one.name = names.remove(&one.action).unwrap_or_default();
    }
}

fn record_events(
    decisions: &[Decided],
    duplicates: &Found,
    new: &[NewDispatch],
    definitions: &HashMap<Uuid, Definition>,
    written: &mut Written,
) {
    let mut events = WorkerEvents::default();
    for (timer, decision) in decisions {
        for skipped in &decision.skipped {
            written.skipped += skipped.count;
            let mut detail = json!({
                "reason": skipped.reason.as_str(),
                "from": rfc3339(skipped.from),
                "until": rfc3339(skipped.until),
                "count": skipped.count,
            });
            if let Some(stand) = duplicates.stand(timer.action, skipped.reason) {
                detail["dispatch_id"] = stand.to_string().into();
            }
            events.add(timer.action, EventKind::Skipped, &detail);
        }
        if let Then::End(reason) = decision.then {
            events.add(timer.action, reason.event_kind(), &json!({}));
        }
    }
    let is_recorded = |one: &&NewDispatch| {
        let namespace = definitions.get(&one.action).map(Definition::namespace);
        settings::record_dispatches(namespace)
    };
    for one in new.iter().filter(is_recorded) {
        let detail = json!({
            "dispatch_id": one.id.to_string(),
            "scheduled_at": rfc3339(one.occurrence),
        });
        events.add(one.action, EventKind::Dispatched, &detail);
    }
    events.record();
}

fn rfc3339(instant: Instant) -> String {
    instant.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

fn announce_available(
    new: &[NewDispatch],
    definitions: &HashMap<Uuid, Definition>,
    clock: Instant,
) {
    let available = new.iter().filter(|one| one.available_at <= clock);
    let announcements: Vec<Announcement> = available
        .filter_map(|one| Some(definitions.get(&one.action)?.announcement(one)))
        .collect();
    announce::announce(&announcements);
}
