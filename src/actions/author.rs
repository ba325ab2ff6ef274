//! Changing an action: lock, decide, write.

use super::events;
use super::identity::Identity;
use super::notices;
use super::quota;
use super::resolve::unknown_id;
use super::store::{self, Stored};
use super::values::int4;
use crate::access::{self, Actor, Visible};
use crate::alerts::{alarms, contacts};
use crate::commands;
use crate::history::contexts::{self, NewContext};
use crate::history::events as history;
use crate::history::lines;
use crate::pg::error::SqlError;
use crate::pg::jsonb::Jsonb;
use crate::pg::query::pg_uuid;
use crate::pg::srf::ResultSet;
use crate::pg::{subtransaction, time};
use crate::runtime::environment::environment;
use crate::runtime::{clock, wakeup};
use chrono::{DateTime, Utc};
use pgrx::pg_sys;
use recur_core::action::{
    Action, Change, Changes, Column, Definition, Event, Invalid, Update, Value,
};
use recur_core::command;
use uuid::Uuid;

const UNIQUE_VIOLATION: &str = "23505";

/// The role that writes, and what it sees: looked up before the process acts as the engine.
pub struct Author {
    visible: Visible,
    actor: Actor,
    role: pg_sys::Oid,
}

/// What the functions that change an action return.
pub struct Summary {
    pub id: Uuid,
    pub name: String,
    pub enabled: bool,
    pub next_run_at: Option<DateTime<Utc>>,
}

/// An action that no other session changes or dispatches until this transaction ends.
pub struct Locked {
    pub id: Uuid,
    /// Taken after the lock: an occurrence that was dispatched while this session waited is not ahead of its time.
    pub now: DateTime<Utc>,
    pub stored: Stored,
    pub action: Action<Jsonb>,
    /// Dispatches that were created ahead.
    ahead: Vec<Uuid>,
}

impl Locked {
    /// Does the action hold this identity? An action that was added beside another one does not.
    pub fn holds(&self, identity: &Identity) -> bool {
        !self.action.duplicate
            && Identity::of(&self.action.definition, self.stored.owner_id()) == *identity
    }

    /// Refuses to change what somebody else has changed since the author read it.
    pub fn check_unchanged_since(&self, expected: DateTime<Utc>) -> Result<(), SqlError> {
        let updated_at = self.stored.updated_at();
        if updated_at == Some(expected) {
            return Ok(());
        }
        let message = format!(
            "action \"{}\" is not as it was at {}",
            self.action.definition.name(),
            time::shown(expected)
        );
        let last = updated_at.map(time::shown).unwrap_or_default();
        Err(SqlError::own("RC011", message)
            .with_detail(format!("It was last changed at {last}."))
            .with_hint("Read it again, and see whether the change still fits."))
    }
}

impl Summary {
    pub fn of(id: Uuid, action: &Action<Jsonb>) -> Summary {
        Summary {
            id,
            name: action.definition.name().to_owned(),
            enabled: action.timer.enabled,
            next_run_at: action.timer.next_due(),
        }
    }

    pub fn put(&self, result: &ResultSet) {
        result.put(&[
            pg_uuid(self.id).into(),
            self.name.as_str().into(),
            self.enabled.into(),
            self.next_run_at.map(time::timestamptz).into(),
        ]);
    }
}

impl Author {
    /// The current role.
    pub fn current() -> Author {
        Author {
            visible: access::visible(),
            actor: Actor::current(),
            role: access::caller(),
        }
    }

    /// The engine, where a worker changes actions by itself.
    pub fn worker() -> Author {
        Author {
            visible: Visible::All,
            actor: Actor::worker(),
            role: access::caller(),
        }
    }

    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    pub fn visible(&self) -> &Visible {
        &self.visible
    }

    /// Locks an action; None if the author sees no such action. `locks_context` is for changes of the context.
    pub fn lock(&self, id: Uuid, locks_context: bool) -> Option<Locked> {
        if !store::lock_timer(id, &self.visible) {
            return None;
        }
        let now = clock::now();
        let ahead = store::lock_ahead(id, now);
        let stored = store::read(id, locks_context)?;
        let action = stored.action();
        Some(Locked {
            id,
            now,
            stored,
            action,
            ahead,
        })
    }

    /// The same, with an error if the author sees no such action.
    pub fn lock_known(&self, id: Uuid, locks_context: bool) -> Result<Locked, SqlError> {
        self.lock(id, locks_context)
            .ok_or_else(|| unknown_id(&id.to_string()))
    }

    /// Changes an action.
    pub fn change(&self, locked: Locked, changes: &Changes<Jsonb>) -> Result<Summary, SqlError> {
        self.change_as(locked, changes, |change| change)
    }

    /// Changes an action as one of many.
    pub fn change_in_bulk(
        &self,
        locked: Locked,
        changes: &Changes<Jsonb>,
    ) -> Result<Summary, SqlError> {
        self.change_as(locked, changes, Change::in_bulk)
    }

    fn change_as(
        &self,
        locked: Locked,
        changes: &Changes<Jsonb>,
        kind: impl FnOnce(Change<Jsonb>) -> Change<Jsonb>,
    ) -> Result<Summary, SqlError> {
        let environment = environment();
        let Some(change) = Change::new(locked.action.clone(), changes, &environment)? else {
            return Ok(Summary::of(locked.id, &locked.action));
        };
        let change = kind(change);
        let withdrawn = store::withdraw(locked.id, &locked.ahead);
        let update = change.effect(withdrawn, locked.now, &environment)?;
        self.check_command(&locked, &update)?;
        self.write(&locked, &update)?;
        notices::of_change(&locked.action, &update.action, changes);
        Ok(Summary::of(locked.id, &update.action))
    }

    /// What the database runs is checked when it is written, and only some may write it.
    fn check_command(&self, before: &Locked, update: &Update<Jsonb>) -> Result<(), SqlError> {
        const DECISIVE: [Column; 3] = [Column::Provider, Column::ActionType, Column::Payload];
        let is_decisive = |column: &Column| DECISIVE.contains(column);
        match update.changed.iter().any(is_decisive) {
            true => self.check_runnable(before.stored.owner_id(), &update.action.definition),
            false => Ok(()),
        }
    }

    /// Checks a definition that the database would run, and who writes it; arms its owner the first time.
    pub fn check_runnable(
        &self,
        owner_id: i32,
        definition: &Definition<Jsonb>,
    ) -> Result<(), SqlError> {
        let (Some(provider), Some(action_type), Value::Json(payload)) = (
            definition.get(Column::Provider).as_text(),
            definition.get(Column::ActionType).as_text(),
            definition.get(Column::Payload),
        ) else {
            return Ok(());
        };
        if provider != command::PROVIDER {
            return Ok(());
        }
        commands::check_author(self.role, owner_id)?;
        commands::check_payload(action_type, payload)?;
        commands::prepare(owner_id, &self.actor.name);
        Ok(())
    }

    /// Commands that wait to be run are given to another owner.
    pub fn check_pending_commands(&self, from: i32, to: i32) -> Result<(), SqlError> {
        if !commands::armed::has_something_to_run(from) {
            return Ok(());
        }
        commands::check_author(self.role, to)?;
        commands::prepare(to, &self.actor.name);
        Ok(())
    }

    fn write(&self, before: &Locked, update: &Update<Jsonb>) -> Result<(), SqlError> {
        let (id, owner_id) = (before.id, before.stored.owner_id());
        write_definition(before, update)?;
        if update.promotes_duplicate {
            Identity::of(&before.action.definition, owner_id).promote_duplicate()?;
        }
        if update.changes_tenant || update.changed.contains(&Column::Subject) {
            let definition = &update.action.definition;
            quota::check(owner_id, definition.tenant(), definition.subject())?;
        }
        let max_completed = update.action.definition.max_completed();
        if max_completed != before.action.definition.max_completed() {
            store::set_max_completed(id, max_completed);
        }
        if update.changes_timer {
            store::update_timer(id, &update.action.timer);
            wake(before.action.timer.due_at, update.action.timer.due_at);
        }
        watch(before, update);
        if update.changed.contains(&Column::Context) {
            self.write_context(before, update);
        }
        let name = update.action.definition.name();
        self.record(id, owner_id, name, &update.events);
        Ok(())
    }

    /// Progress is locked, so the version has not changed since it was read.
    fn write_context(&self, before: &Locked, update: &Update<Jsonb>) {
        let new = NewContext {
            action: before.id,
            context: update.action.context,
            expected_version: None,
            dispatch: None,
            actor: &self.actor.name,
        };
        if contexts::set(new).is_err() {
            pgrx::error!("pg_recur: a context has changed although it is locked");
        }
    }

    /// Records what the author did to an action of this name.
    pub fn record(&self, id: Uuid, owner_id: i32, name: &str, events: &[Event<Jsonb>]) {
        let recorded = events
            .iter()
            .map(|event| events::recorded(event, id, owner_id));
        history::record_changes(&recorded.collect::<Vec<_>>(), &self.actor);
        for event in events {
            lines::changed(event.kind, id, name, &self.actor);
        }
    }
}

/// Alarms look at an action again after each change. Contacts that were notified of errors are notified that they are
/// counted anew.
fn watch(before: &Locked, update: &Update<Jsonb>) {
    let (old, new) = (&before.action, &update.action);
    let set = [old, new].map(|action| alarms_of(&action.definition));
    if set.iter().any(|set| set.any) {
        let counts_anew = (new.timer.enabled && !old.timer.enabled) || set[0] != set[1];
        alarms::watch(before.id, set[1], counts_anew, before.now);
    }
    if old.timer.error_count > 0 && new.timer.error_count == 0 {
        contacts::mended(&[(before.id, int4(old.timer.error_count))]);
    }
}

/// Which alarms a definition sets.
pub fn alarms_of(definition: &Definition<Jsonb>) -> alarms::Set {
    let has = |column| !definition.get(column).is_null();
    let silence = has(Column::MaxSilence);
    alarms::Set {
        any: silence || has(Column::LateAfter) || has(Column::MaxRuntime),
        silence,
    }
}

fn write_definition(before: &Locked, update: &Update<Jsonb>) -> Result<(), SqlError> {
    let is_redefined = update.changed.iter().any(|column| !column.is_state());
    if !is_redefined {
        store::touch_definition(before.id, before.now);
        return Ok(());
    }
    let write = || store::update_definition(before.id, &update.action, before.now);
    if !update.changed.iter().any(|column| column.is_identity()) {
        write();
        return Ok(());
    }
    let written =
        subtransaction::attempt_unless(write, |failure| failure.sqlstate != UNIQUE_VIOLATION);
    Ok(written.map_err(|_| Invalid::is_taken(&update.action.definition))?)
}

/// Wakes the dispatcher for a timer that is due earlier than before. A timer that is due later needs no wake-up.
pub fn wake(before: Option<DateTime<Utc>>, after: Option<DateTime<Utc>>) {
    if let Some(due_at) = after.filter(|after| before.is_none_or(|before| *after < before)) {
        wakeup::due_on_commit(time::to_micros(due_at));
    }
}
