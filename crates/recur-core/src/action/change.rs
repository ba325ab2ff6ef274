//! What follows from changing an action.
//!
//! A change has two steps, because dispatches that were created ahead are withdrawn in between: [`Change::new`] checks
//! the values and answers whether anything changes at all; [`Change::effect`] works out what follows.

use chrono::{DateTime, Utc};

use super::changes::Changes;
use super::check::checked;
use super::columns::Column;
use super::definition::Definition;
use super::demands::check_demands;
use super::effect::check_reason;
use super::environment::Environment;
use super::event::{Event, EventKind};
use super::invalid::Invalid;
use super::journey;
use super::runs::{due_at, first_run, just_before, next_run, resumed_run, skipped_while_paused};
use super::state::{Action, Timer};
use super::value::{Json, Value};

/// A change that passed the checks.
///
/// The dispatches that were created ahead were decided on the old definition: any change withdraws them.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<J> {
    before: Action<J>,
    after: Action<J>,
    changed: Vec<Column>,
    /// What was asked for, also where the action is in that state already.
    wants_enabled: Option<bool>,
    is_in_bulk: bool,
}

/// The dispatches that were withdrawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Withdrawn {
    /// How many.
    pub count: i64,
    /// The last occurrence that was dispatched, without them.
    pub last_run_at: Option<DateTime<Utc>>,
}

/// What follows from a change: all that is to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Update<J> {
    /// The action as it is from now on.
    pub action: Action<J>,
    /// The columns that differ from before, the state's included.
    pub changed: Vec<Column>,
    /// Does the oldest action beside it take over the old identity?
    pub promotes_duplicate: bool,
    /// Has the action another tenant, whose quota it counts against?
    pub changes_tenant: bool,
    /// Does the timer differ from what is stored?
    pub changes_timer: bool,
    /// What is recorded, in this order.
    pub events: Vec<Event<J>>,
}

impl<J: Json> Change<J> {
    /// Checks the changes of an action; None if it has all of these values already.
    pub fn new(
        before: Action<J>,
        changes: &Changes<J>,
        environment: &Environment<'_>,
    ) -> Result<Option<Change<J>>, Invalid> {
        let mut after = before.clone();
        for (column, value) in changes.iter() {
            assign(&mut after, column, checked(column, value, environment)?);
        }
        adjust_grace(&before.definition, &mut after.definition, changes);
        let named = changes.iter().map(|(column, _)| column);
        let derived = [Column::MisfireGrace].into_iter();
        let derived = derived.filter(|column| changes.get(*column).is_none());
        let changed: Vec<Column> = named
            .chain(derived)
            .filter(|column| before.get(*column) != after.get(*column))
            .collect();
        if changed.is_empty() {
            return Ok(None);
        }
        if changed.contains(&Column::PausedReason) {
            check_reason(after.timer.enabled, after.timer.paused_reason.as_deref())?;
        }
        after.definition.check_together()?;
        journey::check(&after)?;
        let concerns = |columns: &[Column]| columns.iter().any(|column| changed.contains(column));
        check_demands(&after, concerns, environment)?;
        if changed.contains(&Column::Context) {
            after.context_version += 1;
        }
        // Under another identity it is the only one, or the identity is taken.
        after.duplicate &= !changed.iter().any(|column| column.is_identity());
        Ok(Some(Change {
            before,
            after,
            changed,
            wants_enabled: changes.get(Column::Enabled).and_then(Value::as_bool),
            is_in_bulk: false,
        }))
    }

    /// The same change as one of many: `resume_all` resumes what was paused so.
    pub fn in_bulk(self) -> Change<J> {
        Change {
            is_in_bulk: true,
            ..self
        }
    }

    /// The definition as it will be.
    pub fn definition(&self) -> &Definition<J> {
        &self.after.definition
    }

    /// Works out what follows, after the dispatches that were created ahead have been withdrawn.
    pub fn effect(
        self,
        withdrawn: Withdrawn,
        now: DateTime<Utc>,
        environment: &Environment<'_>,
    ) -> Result<Update<J>, Invalid> {
        let Change {
            mut before,
            mut after,
            mut changed,
            wants_enabled,
            is_in_bulk,
        } = self;
        let is_counted_from_now = after.definition.fill_in_start(now, environment)?;
        if is_counted_from_now && !changed.contains(&Column::StartsAt) {
            changed.push(Column::StartsAt);
        }
        let stored = before.timer.clone();
        before.timer.withdraw(withdrawn, now);
        // The runs that were withdrawn no longer count.
        after.timer.run_count = before.timer.run_count;
        let turn = Turn {
            action: &after,
            definition: &after.definition,
            changed: &changed,
            now,
            environment,
        };
        let mut timer = before.timer.clone();
        let is_rescheduled = turn.reschedule(&mut timer)?;
        if is_rescheduled {
            turn.revive(&mut timer);
        }
        let is_regenerated = turn.regenerate(&mut timer, withdrawn.count > 0, is_rescheduled)?;
        let mut events = Vec::new();
        let switch = turn.switch(&mut timer, &after.timer, wants_enabled, &mut events)?;
        if switch.is_some() || timer.enabled {
            timer.paused_in_bulk = is_in_bulk && switch == Some(EventKind::Paused);
        }
        match is_rescheduled || is_regenerated || switch.is_some() {
            true => turn.settle(&mut timer),
            false => mend(&mut timer),
        }
        if timer.enabled && !before.timer.enabled {
            // What failed before does not count any more.
            timer.error_count = 0;
        }
        let changes_tenant = changed.contains(&Column::Tenant);
        let is_moved = changed.iter().any(|column| column.is_identity());
        let action = Action { timer, ..after };
        // What people saw as the next run may have been ahead of its time.
        before.timer.next_run_at = stored.next_due();
        let number = Some(withdrawn.count).filter(|count| *count > 0);
        let switched = switch.map(|kind| switched(kind, &action.timer));
        events.extend(switched.map(|event| event.with_some("withdrawn", number)));
        let number = number.filter(|_| switch.is_none());
        let updated = updated(&before, &action, &changed, switch.is_some());
        events.extend(updated.map(|event| event.with_some("withdrawn", number)));
        Ok(Update {
            promotes_duplicate: is_moved && !before.duplicate,
            changes_tenant,
            changes_timer: action.timer != stored,
            action,
            changed,
            events,
        })
    }
}

/// The default of misfire_grace depends on misfire.
fn adjust_grace<J: Json>(before: &Definition<J>, after: &mut Definition<J>, changes: &Changes<J>) {
    let is_named = changes.get(Column::MisfireGrace).is_some();
    if after.skips_misfires() {
        after.fill_in_grace();
    } else if before.skips_misfires() && !is_named {
        after.drop_default_grace();
    }
}

fn assign<J: Json>(action: &mut Action<J>, column: Column, value: Value<J>) {
    match column {
        Column::Context => action.context = value.as_json().cloned(),
        Column::Enabled => action.timer.enabled = value.as_bool().unwrap_or(action.timer.enabled),
        Column::PausedReason => action.timer.paused_reason = value.as_text().map(str::to_owned),
        column => action.definition.set(column, value),
    }
}

/// One evaluation of a change.
struct Turn<'a, J> {
    action: &'a Action<J>,
    definition: &'a Definition<J>,
    changed: &'a [Column],
    now: DateTime<Utc>,
    environment: &'a Environment<'a>,
}

impl<J: Json> Turn<'_, J> {
    fn changes(&self, column: Column) -> bool {
        self.changed.contains(&column)
    }

    /// The next run is counted from now, or from a start in the future, which may be an occurrence itself.
    fn from(&self) -> DateTime<Utc> {
        let start = self.definition.starts_at().map(just_before);
        start.map_or(self.now, |start| start.max(self.now))
    }

    /// Another schedule, time zone or bound moves the next run. Of a paused action it is worked out as well: an action
    /// must be able to go on.
    fn reschedule(&self, timer: &mut Timer) -> Result<bool, Invalid> {
        if !self.changed.iter().any(|column| column.reschedules()) {
            return Ok(false);
        }
        let max_runs = self
            .definition
            .max_runs()
            .filter(|_| self.changes(Column::MaxRuns));
        if let Some(max_runs) = max_runs.filter(|_| self.action.is_exhausted()) {
            let problem = format!("the action has had {} runs already", self.action.runs());
            return Err(
                Invalid::argument("max_runs", &max_runs.to_string(), &problem)
                    .with_hint("Choose a higher number, or null for no limit."),
            );
        }
        let next_run_at = first_run(self.definition, self.from(), self.now, self.environment)?;
        timer.next_run_at = Some(next_run_at);
        Ok(true)
    }

    /// An action that has ended goes on, if another schedule or bound leaves it a run.
    fn revive(&self, timer: &mut Timer) {
        if timer.ended_reason.is_some() && !self.action.is_exhausted() {
            timer.ended_reason = None;
            timer.paused_reason = None;
            timer.missed_from = None;
            timer.enabled = true;
        }
    }

    /// What was created ahead is created again, by another definition or for another horizon.
    fn regenerate(
        &self,
        timer: &mut Timer,
        is_withdrawn: bool,
        is_rescheduled: bool,
    ) -> Result<bool, Invalid> {
        let changes_horizon = self.changes(Column::Horizon) || self.changes(Column::HorizonCount);
        let has_another_horizon = timer.enabled && changes_horizon;
        if !is_withdrawn && !has_another_horizon {
            return Ok(false);
        }
        // The last run may have been among those that were withdrawn.
        timer.enabled |= timer.ended_reason.take().is_some();
        let is_overdue = timer.next_run_at.is_some_and(|next| next <= self.now);
        if timer.enabled && !is_rescheduled && !is_overdue {
            let next_run_at = next_run(self.definition, self.from(), self.environment)?;
            timer.next_run_at = next_run_at.or(timer.next_run_at);
        }
        Ok(true)
    }

    /// Pauses or resumes; returns which.
    fn switch(
        &self,
        timer: &mut Timer,
        wanted: &Timer,
        wants_enabled: Option<bool>,
        events: &mut Vec<Event<J>>,
    ) -> Result<Option<EventKind>, Invalid> {
        match wants_enabled {
            Some(false) if timer.enabled => {
                timer.missed_from = timer.next_run_at;
                timer.enabled = false;
                timer.paused_reason = wanted.paused_reason.clone();
                Ok(Some(EventKind::Paused))
            }
            Some(true) if self.changes(Column::Enabled) => {
                let next_run_at = resumed_run(self.action, self.now, self.environment)?;
                timer.next_run_at = Some(next_run_at);
                let missed_from = timer.missed_from.take();
                let skipped =
                    skipped_while_paused(self.definition, missed_from, self.now, self.environment)?;
                events.extend(skipped);
                timer.enabled = true;
                timer.paused_reason = None;
                timer.ended_reason = None;
                Ok(Some(EventKind::Resumed))
            }
            _ => {
                if self.changes(Column::PausedReason) {
                    timer.paused_reason = wanted.paused_reason.clone().filter(|_| !timer.enabled);
                }
                Ok(None)
            }
        }
    }

    /// A disabled action has no next run, and one with a horizon is looked at now.
    fn settle(&self, timer: &mut Timer) {
        timer.next_run_at = timer.next_run_at.filter(|_| timer.enabled);
        timer.due_at = due_at(self.definition, timer.next_run_at, self.now);
        // It may wait for its last runs to end.
        timer.due_at = timer.due_at.or(timer.enabled.then_some(self.now));
    }
}

/// An edit may have removed the reason of an error: the action is tried at once, not after its pause.
fn mend(timer: &mut Timer) {
    if timer.error_count > 0 && timer.next_run_at.is_some() && timer.due_at > timer.next_run_at {
        timer.due_at = timer.next_run_at;
    }
}

fn switched<J: Json>(kind: EventKind, timer: &Timer) -> Event<J> {
    Event::new(kind)
        .with_some("reason", timer.paused_reason.clone())
        .with_some("next_run_at", timer.next_run_at)
}

/// The old and the new values of all that differs; a pause or a resumption has an event of its own.
fn updated<J: Json>(
    before: &Action<J>,
    after: &Action<J>,
    changed: &[Column],
    is_switched: bool,
) -> Option<Event<J>> {
    let mut old = Vec::new();
    let mut new = Vec::new();
    let mut compare = |key: &'static str, was: Value<J>, is: Value<J>| {
        if was != is {
            old.push((key, was));
            new.push((key, is));
        }
    };
    for column in changed
        .iter()
        .copied()
        .filter(|column| !is_of_timer(*column))
    {
        compare(column.name(), before.get(column), after.get(column));
    }
    compare("duplicate", before.duplicate.into(), after.duplicate.into());
    compare(
        "context_version",
        before.context_version.into(),
        after.context_version.into(),
    );
    if !is_switched {
        let (was, is) = (&before.timer, &after.timer);
        compare("enabled", was.enabled.into(), is.enabled.into());
        compare(
            "paused_reason",
            was.paused_reason.clone().into(),
            is.paused_reason.clone().into(),
        );
        compare(
            "ended_reason",
            was.ended_reason.clone().into(),
            is.ended_reason.clone().into(),
        );
        compare("next_run_at", was.next_run_at.into(), is.next_run_at.into());
    }
    if old.is_empty() {
        return None;
    }
    Some(
        Event::new(EventKind::Updated)
            .with_object("old", old)
            .with_object("new", new),
    )
}

fn is_of_timer(column: Column) -> bool {
    matches!(column, Column::Enabled | Column::PausedReason)
}
