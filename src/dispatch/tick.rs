//! One batch: lock, decide, write, notify. All in the caller's transaction.

use super::decide::{self, Decision, Due, EndReason, Horizon, Overlap, Then};
use super::definition::{self, Compiled};
use super::later::Announced;
use super::repeated::Repeated;
use super::store::{
    self, Advance, LockedTimer, NewDispatch, NewEvents, Position, StoredDefinition,
};
use super::{announce, id};
use crate::guc;
use crate::pg::lock_timeout::LockTimeout;
use crate::pg::transaction::Failure;
use crate::pg::{subtransaction, time};
use crate::wake;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use pgrx::check_for_interrupts;
use pgrx::spi::SpiResult;
use serde_json::json;
use std::collections::HashMap;
use uuid::Uuid;

type Instant = DateTime<Utc>;

/// Which timers a batch takes.
pub struct Scope {
    /// The instant it works for.
    pub now: Instant,
    /// No timer is due earlier.
    pub from: Instant,
    pub order: Order,
}

pub enum Order {
    /// What has been due longest.
    Oldest,
    /// The same among those of tenant `default`, which have no place among the tenants that take turns.
    Untenanted,
    /// A share for every tenant, beginning after this one.
    Fair { after_tenant: String },
    /// What will be due, ahead of its time.
    Staged(Ahead),
}

/// What of the time to come: all behind a position, up to an instant.
#[derive(Clone, Copy)]
pub struct Ahead {
    pub after: Position,
    pub until: Instant,
}

/// What one batch did.
#[derive(Default)]
pub struct Tick {
    pub dispatched: usize,
    pub skipped: u64,
    /// The actions that have come to their end, and why.
    pub ended: Vec<(Uuid, EndReason)>,
    pub failed: usize,
    /// It took as many timers as it could: there may be more.
    pub full: bool,
    /// Some of its timers are due once more: only a part of what they missed was made up for.
    pub still_due: bool,
    /// The last of the locked timers.
    pub last: Option<Position>,
    /// With `Order::Staged`: so many of them are left to their instant.
    pub left: usize,
    /// It took nothing, because it could not be locked in time: nobody knows what there is.
    pub timed_out: bool,
    /// With `Order::Fair`: the tenant up to which all have had their turn.
    pub last_tenant: String,
    /// How late each dispatch was, in microseconds.
    pub lateness: Vec<i64>,
    /// When the first of those is available that are not yet: the first dispatcher has to tell of them then.
    pub available_later: Option<Instant>,
}

/// Runs one batch; an SQL error that is not the fault of a row is raised as such.
pub fn run_batch(scope: &Scope) -> Tick {
    let _quiet = wake::Dispatching::begin();
    match try_run_batch(scope, guc::batch_size()) {
        Ok(tick) => tick,
        Err(error) => pgrx::error!("pg_recur: {error}"),
    }
}

fn try_run_batch(scope: &Scope, batch_size: i64) -> SpiResult<Tick> {
    let mut errors: Vec<ActionError> = Vec::new();
    // Locked and advanced by the same subtransaction: a row that one has locked and another advances would have to
    // remember both, in a multixact.
    let together = subtransaction::attempt_unless(
        || {
            let (tick, locked) = lock(scope, batch_size)?;
            let written = write(scope, &locked, Care::Little)?;
            SpiResult::Ok((tick, written))
        },
        |failure| !failure.is_about_data() && !failure.is_lock_timeout(),
    );
    let mut tick = match together {
        Ok(done) => {
            let (mut tick, written) = done?;
            tick.add(written, &mut errors);
            tick
        }
        // As with any row that is locked elsewhere: later.
        Err(failure) if failure.is_lock_timeout() => {
            return Ok(Tick {
                timed_out: true,
                ..Tick::default()
            });
        }
        // One of them is to blame. Alone, each shows whether it is the one.
        Err(_) => {
            let (mut tick, locked) = lock(scope, batch_size)?;
            for timer in &locked {
                check_for_interrupts!();
                let alone = std::slice::from_ref(timer);
                match subtransaction::attempt(|| write(scope, alone, Care::Much)) {
                    Ok(written) => tick.add(written?, &mut errors),
                    Err(failure) => errors.push(ActionError::from_failure(timer.action, failure)),
                }
            }
            tick
        }
    };
    tick.failed = errors.len();
    record_errors(errors, scope.now)?;
    Ok(tick)
}

/// SKIP LOCKED waits after all where a row was changed by one transaction, which has just ended, and is being changed by
/// another. That one may be waiting for what this transaction has locked.
const SKIPPING_WAITS_AT_MOST: i32 = 50;

/// Locks what the batch is about.
fn lock(scope: &Scope, batch_size: i64) -> SpiResult<(Tick, Vec<LockedTimer>)> {
    let _patience = LockTimeout::of_millis(SKIPPING_WAITS_AT_MOST);
    let mut last_tenant = String::new();
    let mut locked = match &scope.order {
        Order::Oldest => store::lock_due(scope.from, scope.now, batch_size)?,
        Order::Untenanted => store::lock_due_untenanted(scope.from, scope.now, batch_size)?,
        Order::Staged(ahead) => store::lock_due_ahead(ahead.after, ahead.until, batch_size)?,
        Order::Fair { after_tenant } => {
            let (locked, reached) =
                store::lock_due_fairly(scope.from, scope.now, batch_size, after_tenant)?;
            last_tenant = reached;
            locked
        }
    };
    let tick = Tick {
        full: locked.len() as i64 == batch_size,
        last: locked.last().map(LockedTimer::position),
        last_tenant,
        ..Tick::default()
    };
    if locked.len() > guc::notify_each_max() {
        // No listener sees the order of so many. In the order of the indexes, neighbours are found on the same pages.
        locked.sort_unstable_by_key(|timer| timer.action);
    }
    Ok((tick, locked))
}

/// How sure it is that no occurrence has a dispatch yet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Care {
    /// It should not have one: if it has, the batch fails and is repeated with care.
    Little,
    Much,
}

/// What writing some of the timers came to.
#[derive(Default)]
struct Written {
    dispatched: usize,
    skipped: u64,
    ended: Vec<(Uuid, EndReason)>,
    still_due: bool,
    left: usize,
    lateness: Vec<i64>,
    available_later: Option<Instant>,
    /// Actions that can't be evaluated, and why.
    errors: Vec<ActionError>,
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

    /// A definition that makes no sense is as good as a bad argument.
    fn bad_definition(action: Uuid, message: String) -> ActionError {
        ActionError {
            action,
            sqlstate: "22023".to_owned(),
            message,
        }
    }
}

impl Tick {
    /// There may be more that is due.
    pub fn more(&self) -> bool {
        self.full || self.still_due
    }

    /// When the last of the locked timers was due.
    pub fn last_due_at(&self) -> Option<Instant> {
        self.last.map(|last| last.due_at)
    }

    fn add(&mut self, written: Written, errors: &mut Vec<ActionError>) {
        self.dispatched += written.dispatched;
        self.skipped += written.skipped;
        self.ended.extend(written.ended);
        self.still_due |= written.still_due;
        self.left += written.left;
        self.lateness.extend(written.lateness);
        self.available_later = self
            .available_later
            .into_iter()
            .chain(written.available_later)
            .min();
        errors.extend(written.errors);
    }
}

fn write(scope: &Scope, locked: &[LockedTimer], care: Care) -> SpiResult<Written> {
    if locked.is_empty() {
        return Ok(Written::default());
    }
    let now = scope.now;
    let definitions = store::read_definitions(locked.iter().map(|timer| timer.action).collect())?;
    let mut written = Written::default();
    let decisions = decide_all(scope, locked, &definitions, &mut written)?;
    written.left = locked.len() - decisions.len();

    let mut new = new_dispatches(&decisions, &definitions, now);
    let repeated = Repeated::of(locked);
    repeated.drop_unrecorded(&mut new, &definitions);
    let cancelling = decisions.iter().filter(|(_, d)| d.cancels_previous);
    store::cancel_previous(cancelling.map(|(timer, _)| timer.action).collect())?;
    if repeated.is_possible() || care == Care::Much {
        let inserted = store::insert_missing_dispatches(&new)?;
        new.retain(|dispatch| inserted.contains(&dispatch.id));
    } else {
        store::insert_dispatches(&new)?;
    }
    repeated.take_back_finished(&mut new)?;
    written.dispatched = new.len();
    let clock = time::now();
    written.lateness = new
        .iter()
        .filter(|dispatch| dispatch.occurrence <= now && dispatch.available_at <= clock)
        .map(|dispatch| {
            (clock - dispatch.occurrence)
                .num_microseconds()
                .unwrap_or(i64::MAX)
        })
        .collect();
    let advances = advances(&decisions, &new, now, &mut written);
    match care {
        Care::Little => store::advance_locked_timers(&advances)?,
        Care::Much => store::advance_timers(&advances)?,
    }
    store::record_events(events(&decisions, &new, &mut written))?;
    let available: Vec<(&NewDispatch, &StoredDefinition)> = new
        .iter()
        .filter(|dispatch| dispatch.available_at <= clock)
        .filter_map(|dispatch| Some((dispatch, definitions.get(&dispatch.action)?)))
        .collect();
    store::notify(if available.len() > guc::notify_each_max() {
        announce::counts(available.iter().map(|(_, definition)| {
            let channel = definition.notify_channel.as_deref();
            (channel, definition.provider.as_str(), 1)
        }))
    } else {
        announce::messages(available.into_iter().map(announced))
    })?;
    written.available_later = new
        .iter()
        .map(|one| one.available_at)
        .filter(|at| *at > clock)
        .min();
    Ok(written)
}

type Decided<'a> = (&'a LockedTimer, Decision);

fn decide_all<'a>(
    scope: &Scope,
    locked: &'a [LockedTimer],
    definitions: &HashMap<Uuid, StoredDefinition>,
    written: &mut Written,
) -> SpiResult<Vec<Decided<'a>>> {
    let mut compiled: Vec<(&'a LockedTimer, Option<i32>, Compiled)> =
        Vec::with_capacity(locked.len());
    for timer in locked {
        // A definition that is gone takes its timer with it: nothing to do.
        let Some(stored) = definitions.get(&timer.action) else {
            continue;
        };
        match definition::compile(stored) {
            Ok(one) => compiled.push((timer, stored.max_runs, one)),
            // A timer that is only looked at ahead of its time has time to be mended.
            Err(_) if matches!(scope.order, Order::Staged(_)) => {}
            Err(message) => written
                .errors
                .push(ActionError::bad_definition(timer.action, message)),
        }
    }
    if let Order::Staged(ahead) = scope.order {
        // Where the decision could still change before the instant, it is taken then.
        compiled.retain(|(_, _, one)| {
            one.policy.overlap == Overlap::Allow && one.policy.horizon.is_none()
        });
        for (_, _, one) in &mut compiled {
            one.policy.horizon = Some(Horizon {
                reach: ahead.until - scope.now,
                count: None,
            });
        }
    }
    let careful: Vec<Uuid> = compiled
        .iter()
        .filter(|(_, _, one)| one.policy.overlap != Overlap::Allow)
        .map(|(timer, _, _)| timer.action)
        .collect();
    let unfinished = store::unfinished(careful, scope.now)?;
    let decisions = compiled.iter().map(|(timer, max_runs, one)| {
        let due = Due {
            recurrence: &one.recurrence,
            next_run_at: timer.next_run_at,
            run_count: timer.run_count,
            max_runs: max_runs.map(i64::from),
            policy: one.policy,
            unfinished: unfinished.get(&timer.action).copied().unwrap_or_default(),
        };
        let mut decision = decide::decide(&due, scope.now);
        if let (Order::Staged(_), Then::Wait { next, look_at }) = (&scope.order, &mut decision.then)
        {
            *look_at = *next;
        }
        (*timer, decision)
    });
    Ok(match scope.order {
        // What is staged can still be paused: an action is not ended ahead of its last run.
        Order::Staged(_) => decisions
            .filter(|(_, decision)| matches!(decision.then, Then::Wait { .. }))
            .collect(),
        _ => decisions.collect(),
    })
}

fn new_dispatches(
    decisions: &[Decided],
    definitions: &HashMap<Uuid, StoredDefinition>,
    now: Instant,
) -> Vec<NewDispatch> {
    let clock = time::now();
    let mut new = Vec::with_capacity(decisions.len());
    for (timer, decision) in decisions {
        let Some(definition) = definitions.get(&timer.action) else {
            continue;
        };
        for occurrence in &decision.fire {
            let id = id::of_occurrence(timer.action, *occurrence);
            // What is due by the clock that the caller brought is available by everybody's.
            let available_at = match *occurrence <= now {
                true => clock.min(*occurrence),
                false => *occurrence,
            };
            let jitter = definition.jitter;
            let delay = jitter.map_or(TimeDelta::zero(), |most| id::fraction(id, most));
            new.push(NewDispatch {
                id,
                action: timer.action,
                occurrence: *occurrence,
                available_at: available_at + delay,
                definition: definition.place,
            });
        }
    }
    new
}

fn advances(
    decisions: &[Decided],
    new: &[NewDispatch],
    now: Instant,
    written: &mut Written,
) -> Vec<Advance> {
    // In the order of the decisions, as the dispatches are.
    let mut runs = HashMap::<Uuid, (i32, Instant)>::with_capacity(decisions.len());
    for dispatch in new {
        let entry = runs
            .entry(dispatch.action)
            .or_insert((0, dispatch.occurrence));
        entry.0 += 1;
        entry.1 = entry.1.max(dispatch.occurrence);
    }
    decisions
        .iter()
        .map(|(timer, decision)| {
            let action = timer.action;
            let (next_run_at, due_at, ended_reason) = match decision.then {
                Then::Wait { next, look_at } => (Some(next), Some(look_at), None),
                Then::End(reason) => {
                    written.ended.push((action, reason));
                    (None, None, Some(reason.name()))
                }
            };
            written.still_due |= due_at.is_some_and(|due| due <= now);
            let fired = runs.get(&action);
            Advance {
                action,
                timer: timer.place,
                runs: fired.map_or(0, |(count, _)| *count),
                fired: fired.map(|(_, latest)| *latest),
                next_run_at,
                due_at,
                ended_reason,
            }
        })
        .collect()
}

fn events(decisions: &[Decided], new: &[NewDispatch], written: &mut Written) -> NewEvents {
    let mut events = NewEvents::default();
    for (timer, decision) in decisions {
        for skipped in &decision.skipped {
            written.skipped += skipped.count;
            let detail = json!({
                "reason": skipped.reason.name(),
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
    if guc::record_dispatches() {
        for dispatch in new {
            let detail = json!({ "dispatch_id": dispatch.id.to_string(), "scheduled_at": rfc3339(dispatch.occurrence) });
            events.add(dispatch.action, "occurrence.dispatched", &detail);
        }
    }
    events
}

fn rfc3339(instant: Instant) -> String {
    instant.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

fn announced((dispatch, definition): (&NewDispatch, &StoredDefinition)) -> Announced {
    Announced {
        id: dispatch.id,
        action: Some(dispatch.action),
        scheduled_at: dispatch.occurrence,
        namespace: definition.namespace.clone(),
        tenant: definition.tenant.clone(),
        provider: definition.provider.clone(),
        action_type: definition.action_type.clone(),
        channel: definition.notify_channel.clone(),
    }
}

/// Keeps errors on their actions' rows, gives up on those that fail again and again, and tells people of them.
fn record_errors(errors: Vec<ActionError>, now: Instant) -> SpiResult<()> {
    if errors.is_empty() {
        return Ok(());
    }
    let messages: Vec<(Uuid, String)> = errors
        .iter()
        .map(|error| (error.action, error.message.clone()))
        .collect();
    let recorded = store::record_errors(&messages, now, guc::pause_after_errors())?;
    let by_action: HashMap<Uuid, &ActionError> =
        errors.iter().map(|error| (error.action, error)).collect();
    let mut events = NewEvents::default();
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
        events.add(one.action, "action.error", &detail);
        if one.paused {
            let detail = json!({ "reason": format!("{} errors in a row", one.errors_in_a_row) });
            events.add(one.action, "action.paused", &detail);
        }
        if one.paused || one.errors_in_a_row == guc::error_threshold() {
            problems.push((one.action, message.clone()));
        }
    }
    store::record_events(events)?;
    store::tell_contacts(problems)
}
