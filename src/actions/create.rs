//! Creating an action, and what happens where its identity is taken. Everything here runs as the engine.

use super::author::{self, Author};
use super::identity::Identity;
use super::quota;
use super::store;
use crate::pg::error::SqlError;
use crate::pg::jsonb::Jsonb;
use crate::pg::time;
use crate::runtime::environment::environment;
use chrono::{DateTime, Utc};
use recur_core::action::{self, Changes, Column, Created, Environment, Invalid, OnExisting};
use recur_core::dispatch_id;
use uuid::Uuid;

/// A concurrent session that makes an insert impossible makes a change possible, and the other way round. To meet one
/// this often is not expected.
const MOST_TRIES: usize = 10;

/// Creates an action for an owner, or does what is asked for where it exists; returns its id.
pub fn create(
    author: &Author,
    owner_id: i32,
    changes: &Changes<Jsonb>,
    on_existing: OnExisting,
) -> Result<Uuid, SqlError> {
    let creation = Creation {
        author,
        owner_id,
        changes,
        environment: environment(),
    };
    match on_existing {
        OnExisting::Fail => creation.insert_or_fail(),
        OnExisting::Upsert => creation.upsert(),
        OnExisting::AddAnother => creation.add_another(),
    }
}

struct Creation<'a> {
    author: &'a Author,
    owner_id: i32,
    changes: &'a Changes<Jsonb>,
    environment: Environment<'static>,
}

/// An action that is about to be inserted.
struct New {
    created: Created<Jsonb>,
    now: DateTime<Utc>,
}

impl Creation<'_> {
    fn insert_or_fail(&self) -> Result<Uuid, SqlError> {
        let new = self.new_action()?;
        let id = self.insert(&new)?;
        Ok(id.ok_or_else(|| new.is_taken())?)
    }

    /// What would be refused on creation is not checked where the action exists: the one occurrence of a schedule may
    /// have passed since.
    fn upsert(&self) -> Result<Uuid, SqlError> {
        let identity = self.identity()?;
        let changes = self.changes.for_upsert();
        let changes_context = changes.get(Column::Context).is_some();
        for _ in 0..MOST_TRIES {
            let locked = identity
                .holder()
                .and_then(|id| self.author.lock(id, changes_context));
            // Another session may have renamed it before it was locked.
            if let Some(locked) = locked.filter(|locked| locked.holds(&identity)) {
                return Ok(self.author.change(locked, &changes)?.id);
            }
            if let Some(id) = self.insert(&self.new_action()?)? {
                return Ok(id);
            }
        }
        Err(self.new_action()?.is_taken().into())
    }

    /// The holder stays locked while one is added beside it. Were it deleted meanwhile, no action would hold the
    /// identity. The action that is added is younger than the holder.
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

    fn new_action(&self) -> Result<New, Invalid> {
        let now = time::now();
        let created = action::create(self.changes, now, &self.environment)?;
        Ok(New { created, now })
    }

    /// None if another action has the identity.
    fn insert(&self, new: &New) -> Result<Option<Uuid>, SqlError> {
        let id = dispatch_id::random(new.now);
        let action = &new.created.action;
        if !store::insert(id, self.owner_id, action, new.now) {
            return Ok(None);
        }
        quota::check(self.owner_id, action.definition.tenant())?;
        author::wake(None, action.timer.due_at);
        self.author
            .record(id, self.owner_id, std::slice::from_ref(&new.created.event));
        Ok(Some(id))
    }
}

impl New {
    fn is_taken(&self) -> Invalid {
        Invalid::exists(&self.created.action.definition)
    }
}
