//! One batch: lock, decide, write, announce. All in the caller's transaction.

use super::store::{self, Advance, Definition, DueCursor, LockedTimer, NewDispatch};
use crate::history::events::{self, WorkerEvents};
use crate::pg::lock_timeout::LockTimeout;
use crate::pg::transaction::Failure;
use crate::pg::{subtransaction, time};
use crate::queue::{announce, overlap};
use crate::runtime::settings;
use crate::runtime::stats::{BatchCounts, Lateness};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use pgrx::check_for_interrupts;
use recur_core::decide::{self, Decision, Due, EndReason, Mode, Repeated, Then};
use recur_core::definition::{self, Compiled};
use recur_core::dispatch_id;
use recur_core::notify::Announcement;
use recurrence::ScheduleCache;
use serde_json::json;
use std::cell::RefCell;
use std::collections::HashMap;
use uuid::Uuid;

type Instant = DateTime<Utc>;

/// Far more schedules than an application has, at about a kilobyte each.
const CACHED_SCHEDULES: usize = 10_000;

thread_local! {
    /// A million actions share a few schedules: each text is parsed once.
    static SCHEDULES: RefCell<ScheduleCache> = RefCell::new(ScheduleCache::new(CACHED_SCHEDULES));
}

/// Which timers a batch takes.
pub struct Scope {
    /// The instant that the batch works for.
    pub now: Instant,
    pub timers: Timers,
}

#[derive(Clone, Copy)]
pub enum Timers {
    /// Those that are due, the longest due first.
    Due {
        /// The low-water mark: no timer is due earlier.
        from: Instant,
    },
    /// Those that will be due, to be staged.
    Ahead(Ahead),
}

/// A part of the time to come: all behind a position, up to an instant.
#[derive(Clone, Copy)]
pub struct Ahead {
    pub after: DueCursor,
    pub until: Instant,
}

/// What one batch did.
#[derive(Default)]
pub struct Batch {
    pub dispatched: usize,
    pub skipped: u64,
    /// The actions that have ended, and why.
    pub ended: Vec<(Uuid, EndReason)>,
    pub failed: usize,
    /// True if the batch took as many timers as it may: there may be more.
    pub is_full: bool,
    /// True if some of its timers are due once more: only a part of what they missed was made up for.
    pub is_still_due: bool,
    /// The last of the locked timers.
    pub last: Option<DueCursor>,
    /// How many timers were left to their instant instead of being staged.
    pub left: usize,
    /// True if nothing could be locked in time, so that it is not known what is due.
    pub timed_out: bool,
    pub lateness: Vec<Lateness>,
    /// When the first of the dispatches becomes available that is not yet.
    pub available_later: Option<Instant>,
}

impl Batch {
    /// May more timers be due?
    pub fn has_more(&self) -> bool {
        self.is_full || self.is_still_due
    }

    pub fn last_due_at(&self) -> Option<Instant> {
        self.last.map(|last| last.due_at)
    }

    pub fn counts(&self) -> BatchCounts {
        BatchCounts {
            dispatched: self.dispatched as u64,
            skipped: self.skipped,
            ended: self.ended.len() as u64,
            errors: self.failed as u64,
        }
    }

    fn add(&mut self, written: Written, errors: &mut Vec<ActionError>) {
        self.dispatched += written.dispatched;
        self.skipped += written.skipped;
        self.ended.extend(written.ended);
        self.is_still_due |= written.is_still_due;
        self.left += written.left;
        self.lateness.extend(written.lateness);
        let earlier = self.available_later.into_iter();
        self.available_later = earlier.chain(written.available_later).min();
        errors.extend(written.errors);
    }
}

/// Runs one batch as the engine. An error that is not the fault of a row is raised.
pub fn run(scope: &Scope) -> Batch {
    let limit = settings::batch_size();
    let mut errors: Vec<ActionError> = Vec::new();
    // Locked and advanced by the same subtransaction: a row that one locks and another advances needs a multixact.
    let together = subtransaction::attempt_unless(
        || {
            let (batch, locked) = lock(scope, limit);
            (batch, write(scope, &locked, WritePath::Optimistic))
        },
        |failure| !failure.is_about_data() && !failure.is_lock_timeout(),
    );
    let mut batch = match together {
        Ok((mut batch, written)) => {
            batch.add(written, &mut errors);
            batch
        }
        // As with any row that is locked elsewhere: later.
        Err(failure) if failure.is_lock_timeout() => {
            return Batch {
                timed_out: true,
                ..Batch::default()
            };
        }
        // One of the rows is at fault. Written alone, each shows whether it is the one.
        Err(_) => run_one_by_one(scope, limit, &mut errors),
    };
    batch.failed = errors.len();
    record_errors(errors, scope.now);
    batch
}

fn run_one_by_one(scope: &Scope, limit: i64, errors: &mut Vec<ActionError>) -> Batch {
    let (mut batch, locked) = lock(scope, limit);
    for timer in &locked {
        check_for_interrupts!();
        let alone = std::slice::from_ref(timer);
        match subtransaction::attempt(|| write(scope, alone, WritePath::Verified)) {
            Ok(written) => batch.add(written, errors),
            Err(failure) => errors.push(ActionError::from_failure(timer.action, failure)),
        }
    }
    batch
}

/// SKIP LOCKED waits after all where one transaction, which has just ended, changed a row and another is changing it.
/// That one may be waiting for what this transaction has locked.
const LONGEST_LOCK_WAIT_MILLIS: i32 = 50;

fn lock(scope: &Scope, limit: i64) -> (Batch, Vec<LockedTimer>) {
    let _timeout = LockTimeout::of_millis(LONGEST_LOCK_WAIT_MILLIS);
    let mut locked = match scope.timers {
        Timers::Due { from } => store::lock_due(from, scope.now, limit),
        Timers::Ahead(ahead) => store::lock_due_ahead(ahead.after, ahead.until, limit),
    };
    let batch = Batch {
        is_full: locked.len() as i64 == limit,
        last: locked.last().map(LockedTimer::cursor),
        ..Batch::default()
    };
    if locked.len() > settings::notify_each_max() {
        // Listeners hear a count and no order. In the order of the indexes, neighbours are on the same pages.
        locked.sort_unstable_by_key(|timer| timer.action);
    }
    (batch, locked)
}

/// Whether an occurrence may have a dispatch already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WritePath {
    /// It should not: if it has, the batch fails and is repeated on the verified path.
    Optimistic,
    Verified,
}

/// What writing some of the timers did.
#[derive(Default)]
struct Written {
    dispatched: usize,
    skipped: u64,
    ended: Vec<(Uuid, EndReason)>,
    is_still_due: bool,
    left: usize,
    lateness: Vec<Lateness>,
    available_later: Option<Instant>,
    /// Actions that can't be evaluated, and why.
    errors: Vec<ActionError>,
}

fn write(scope: &Scope, locked: &[LockedTimer], path: WritePath) -> Written {
    let mut written = Written::default();
    if locked.is_empty() {
        return written;
    }
    let now = scope.now;
    let definitions = store::read_definitions(locked.iter().map(|timer| timer.action).collect());
    let decisions = decide_all(scope, locked, &definitions, &mut written);
    written.left = locked.len() - decisions.len();

    let mut new = new_dispatches(&decisions, &definitions, now);
    let cancelling = decisions
        .iter()
        .filter(|(_, decision)| decision.cancels_previous);
    overlap::cancel_previous(cancelling.map(|(timer, _)| timer.action).collect());
    insert(&mut new, locked, &definitions, path);
    written.dispatched = new.len();
    let clock = time::now();
    written.lateness = lateness(&new, now, clock);
    let advances = advances(&decisions, &new, now, &mut written);
    match path {
        WritePath::Optimistic => store::advance_locked_timers(&advances),
        WritePath::Verified => store::advance_timers(&advances),
    }
    record_events(&decisions, &new, &mut written);
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

type Decided<'a> = (&'a LockedTimer, Decision);

fn decide_all<'a>(
    scope: &Scope,
    locked: &'a [LockedTimer],
    definitions: &HashMap<Uuid, Definition>,
    written: &mut Written,
) -> Vec<Decided<'a>> {
    let mode = match scope.timers {
        Timers::Due { .. } => Mode::Due,
        Timers::Ahead(ahead) => Mode::Stage { until: ahead.until },
    };
    let mut compiled: Vec<(&'a LockedTimer, Option<i32>, Compiled)> =
        Vec::with_capacity(locked.len());
    for timer in locked {
        // A definition that is gone takes its timer with it.
        let Some(stored) = definitions.get(&timer.action) else {
            continue;
        };
        match SCHEDULES.with_borrow_mut(|cache| definition::compile(&stored.stored(), cache)) {
            Ok(one) => compiled.push((timer, stored.max_runs, one)),
            // There is time to mend a definition before its instant.
            Err(_) if mode != Mode::Due => {}
            Err(error) => written
                .errors
                .push(ActionError::bad_definition(timer.action, error.to_string())),
        }
    }
    let needs_unfinished = |(_, _, one): &&(_, _, Compiled)| one.policy.overlap.needs_unfinished();
    let careful = compiled
        .iter()
        .filter(needs_unfinished)
        .map(|(timer, _, _)| timer.action);
    let unfinished = match mode {
        Mode::Due => store::unfinished(careful.collect(), scope.now),
        Mode::Stage { .. } => HashMap::new(),
    };
    let decisions = compiled.iter().filter_map(|(timer, max_runs, one)| {
        let due = Due {
            recurrence: &one.recurrence,
            next_run_at: timer.next_run_at,
            run_count: timer.run_count,
            max_runs: max_runs.map(i64::from),
            policy: one.policy,
            unfinished: unfinished.get(&timer.action).copied().unwrap_or_default(),
        };
        Some((*timer, decide::decide(&due, scope.now, mode)?))
    });
    decisions.collect()
}

fn new_dispatches(
    decisions: &[Decided],
    definitions: &HashMap<Uuid, Definition>,
    now: Instant,
) -> Vec<NewDispatch> {
    let clock = time::now();
    let mut new = Vec::with_capacity(decisions.len());
    for (timer, decision) in decisions {
        let Some(definition) = definitions.get(&timer.action) else {
            continue;
        };
        for occurrence in &decision.fire {
            let id = dispatch_id::of_occurrence(timer.action, *occurrence);
            // What is due by the caller's clock is available by everybody's.
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
            Then::End(reason) => {
                written.ended.push((action, reason));
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
        }
    };
    decisions.iter().map(advance).collect()
}

fn record_events(decisions: &[Decided], new: &[NewDispatch], written: &mut Written) {
    let mut events = WorkerEvents::default();
    for (timer, decision) in decisions {
        for skipped in &decision.skipped {
            written.skipped += skipped.count;
            let detail = json!({
                "reason": skipped.reason.as_str(),
                "from": rfc3339(skipped.from),
                "until": rfc3339(skipped.until),
                "count": skipped.count,
            });
            events.add(timer.action, "occurrence.skipped", &detail);
        }
        if let Then::End(reason) = decision.then {
            events.add(timer.action, reason.event_kind(), &json!({}));
        }
    }
    if settings::record_dispatches() {
        for one in new {
            let detail = json!({ "dispatch_id": one.id.to_string(), "scheduled_at": rfc3339(one.occurrence) });
            events.add(one.action, "occurrence.dispatched", &detail);
        }
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
        .filter_map(|one| {
            let definition = definitions.get(&one.action)?;
            Some(Announcement {
                id: one.id,
                action_id: Some(one.action),
                scheduled_at: one.occurrence,
                namespace: &definition.namespace,
                tenant: &definition.tenant,
                provider: &definition.provider,
                action_type: &definition.action_type,
                channel: definition.notify_channel.as_deref(),
            })
        })
        .collect();
    announce::announce(&announcements);
}

/// Why an action could not be dispatched.
struct ActionError {
    action: Uuid,
    sqlstate: String,
    message: String,
}

impl ActionError {
    fn from_failure(action: Uuid, failure: Failure) -> ActionError {
        ActionError {
            action,
            message: failure.to_string(),
            sqlstate: failure.sqlstate,
        }
    }

    /// A definition that can't be evaluated counts as an invalid argument.
    fn bad_definition(action: Uuid, message: String) -> ActionError {
        ActionError {
            action,
            sqlstate: "22023".to_owned(),
            message,
        }
    }
}

/// Keeps errors on the rows of their actions, pauses those that fail again and again, and notifies their contacts.
fn record_errors(errors: Vec<ActionError>, now: Instant) {
    if errors.is_empty() {
        return;
    }
    let messages: Vec<(Uuid, &str)> = errors
        .iter()
        .map(|error| (error.action, error.message.as_str()))
        .collect();
    let recorded = store::record_errors(&messages, now, settings::pause_after_errors());
    let by_action: HashMap<Uuid, &ActionError> =
        errors.iter().map(|error| (error.action, error)).collect();
    let mut new_events = WorkerEvents::default();
    let mut problems = Vec::new();
    for one in recorded {
        let Some(ActionError {
            sqlstate, message, ..
        }) = by_action.get(&one.action)
        else {
            continue;
        };
        pgrx::warning!(
            "pg_recur dispatcher: action failed action={} sqlstate={sqlstate} errors_in_a_row={} paused={} message={message:?}",
            one.action,
            one.errors_in_a_row,
            one.paused
        );
        let detail = json!({ "error": message, "sqlstate": sqlstate, "errors_in_a_row": one.errors_in_a_row });
        new_events.add(one.action, "action.error", &detail);
        if one.paused {
            let detail = json!({ "reason": format!("{} errors in a row", one.errors_in_a_row) });
            new_events.add(one.action, "action.paused", &detail);
        }
        if one.paused || one.errors_in_a_row == settings::error_threshold() {
            problems.push((one.action, message.clone()));
        }
    }
    new_events.record();
    events::notify_contacts(problems, events::WORKER);
}
