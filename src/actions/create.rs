//! Creating an action, also if another action has its identity. Everything here runs as the engine.

use super::author::{self, Author};
use super::identity::Identity;
use super::notices;
use super::quota;
use super::store;
use crate::alerts::alarms;
use crate::pg::error::SqlError;
use crate::pg::jsonb::Jsonb;
use crate::runtime::environment::environment;
use crate::runtime::{clock, home};
use chrono::{DateTime, Utc};
use recur_core::action::journey::is_another;
use recur_core::action::{
    self, Changes, Column, Created, Environment, Invalid, Journey, OnExisting,
};
use recur_core::dispatch_id;
use uuid::Uuid;

/// Insert and change take turns: a concurrent session that makes one impossible makes the other possible. More turns
/// than this are not expected.
const MOST_TRIES: usize = 10;

/// Creates an action for an owner, or does what `on_existing` says if it exists; returns its id.
pub fn create(
    author: &Author,
    owner_id: i32,
    changes: &Changes<Jsonb>,
    on_existing: OnExisting,
) -> Result<Uuid, SqlError> {
    Creation::plain(author, owner_id, changes).run(on_existing)
}

/// The same for a schedule of a journey.
pub fn create_of_journey(
    author: &Author,
    owner_id: i32,
    changes: &Changes<Jsonb>,
    on_existing: OnExisting,
    journey: Journey,
) -> Result<Uuid, SqlError> {
    Creation {
        author,
        owner_id,
        changes,
        journey: Some(journey),
        environment: environment(),
    }
    .run(on_existing)
}

pub(super) struct Creation<'a> {
    author: &'a Author,
    owner_id: i32,
    changes: &'a Changes<Jsonb>,
    journey: Option<Journey>,
    environment: Environment<'static>,
}

/// An action that is about to be inserted.
pub(super) struct New {
    pub created: Created<Jsonb>,
    pub now: DateTime<Utc>,
}

impl<'a> Creation<'a> {
    /// Of an action that runs no journey.
    pub fn plain(author: &'a Author, owner_id: i32, changes: &'a Changes<Jsonb>) -> Creation<'a> {
        Creation {
            author,
            owner_id,
            changes,
            journey: None,
            environment: environment(),
        }
    }

    fn run(&self, on_existing: OnExisting) -> Result<Uuid, SqlError> {
        match on_existing {
            OnExisting::Fail => self.insert_or_fail(),
            OnExisting::Upsert => self.upsert(),
            OnExisting::AddAnother => self.add_another(),
        }
    }

    fn insert_or_fail(&self) -> Result<Uuid, SqlError> {
        let new = self.new_action()?;
        let id = self.insert(&new)?;
        Ok(id.ok_or_else(|| new.is_taken())?)
    }

    /// Checks of a creation do not apply to an action that exists: the only occurrence of its schedule may have passed.
    fn upsert(&self) -> Result<Uuid, SqlError> {
        let identity = self.identity()?;
        let changes = self.changes.for_upsert();
        let changes_context = changes.get(Column::Context).is_some();
        for _ in 0..MOST_TRIES {
            let locked = identity
                .holder()
                .and_then(|id| self.author.lock(id, changes_context));
            // Another session may have renamed the action before it was locked.
            if let Some(locked) = locked.filter(|locked| locked.holds(&identity)) {
                let wanted = self.journey.as_ref();
                if let Some(other) = wanted.and_then(|wanted| is_another(&locked.action, wanted)) {
                    return Err(other.into());
                }
                return Ok(self.author.change(locked, &changes)?.id);
            }
            if let Some(id) = self.insert(&self.new_action()?)? {
                return Ok(id);
            }
        }
        Err(self.new_action()?.is_taken().into())
    }

    /// The holder of the identity stays locked while another action is added beside it. Without the lock it could be
    /// deleted meanwhile, and no action would hold the identity. The added action is younger than the holder.
    fn add_another(&self) -> Result<Uuid, SqlError> {
        let identity = self.identity()?;
        for _ in 0..MOST_TRIES {
            let is_duplicate = identity.lock_holder();
            let mut new = self.new_action()?;
            new.created.action.duplicate = is_duplicate;
            if let Some(id) = self.insert(&new)? {
                return Ok(id);
            }
        }
        Err(self.new_action()?.is_taken().into())
    }

    fn identity(&self) -> Result<Identity, Invalid> {
        Identity::asked_for(self.changes, self.owner_id, &self.environment)
    }

    pub fn new_action(&self) -> Result<New, Invalid> {
        let now = clock::now();
        let mut created = action::create(self.changes, now, &self.environment)?;
        if let Some(journey) = &self.journey {
            created = created.of_journey(journey.clone())?;
        }
        Ok(New { created, now })
    }

    /// None if another action has the identity.
    fn insert(&self, new: &New) -> Result<Option<Uuid>, SqlError> {
        let id = dispatch_id::random(new.now);
        let action = &new.created.action;
        self.author
            .check_runnable(self.owner_id, &action.definition)?;
        home::settle_first();
        if !store::insert(id, self.owner_id, action, new.now) {
            return Ok(None);
        }
        let definition = &action.definition;
        quota::check(self.owner_id, definition.tenant(), definition.subject())?;
        author::wake(None, action.timer.due_at);
        let set = author::alarms_of(&action.definition);
        if set.any {
            alarms::watch(id, set, true, new.now);
        }
        let event = std::slice::from_ref(&new.created.event);
        self.author
            .record(id, self.owner_id, definition.name(), event);
        notices::of_creation(action, new.now, &self.environment);
        Ok(Some(id))
    }
}

impl New {
    pub fn is_taken(&self) -> Invalid {
        Invalid::exists(&self.created.action.definition)
    }
}
