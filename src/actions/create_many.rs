//! `recur.create_many`: actions in bulk, a few statements for a thousand.

use super::author::{self, Author};
use super::changes_json::{self, ToCreate};
use super::create::{self, Creation, New};
use super::events;
use super::notices;
use super::quota;
use super::store;
use crate::access;
use crate::alerts::alarms;
use crate::history::events as history;
use crate::pg::error::{OrRaise, SqlError, given};
use crate::pg::jsonb::JsonbArray;
use crate::pg::planner::PlannerPins;
use crate::pg::query::pg_uuid;
use crate::runtime::environment::environment;
use crate::runtime::{engine, home};
use pgrx::check_for_interrupts;
use pgrx::datum::Uuid as PgUuid;
use pgrx::iter::SetOfIterator;
use pgrx::prelude::*;
use recur_core::action::OnExisting;
use recur_core::dispatch_id;
use std::collections::HashMap;
use uuid::Uuid;

/// Read and written at once: it bounds the memory.
const AT_ONCE: usize = 1_000;

/// `recur.create_many(definitions)`: the ids, in the order of the definitions.
#[pg_extern(sql = false)]
fn create_many(definitions: Option<JsonbArray>) -> SetOfIterator<'static, PgUuid> {
    let definitions = given("definitions", definitions).or_raise().values();
    let author = Author::current();
    let owner_id = access::own_id();
    let _pins = PlannerPins::set();
    let mut ids = Vec::with_capacity(definitions.len());
    for (index, part) in definitions.chunks(AT_ONCE).enumerate() {
        check_for_interrupts!();
        let first = index * AT_ONCE + 1;
        let asked = changes_json::read_definitions(part, first).or_raise();
        let part = Part {
            author: &author,
            owner_id,
            first,
        };
        ids.extend(engine::as_engine(|| part.create(&asked)).or_raise());
    }
    SetOfIterator::new(ids.into_iter().map(pg_uuid))
}

/// Definitions that are written at once, the first of which has this number.
struct Part<'a> {
    author: &'a Author,
    owner_id: i32,
    first: usize,
}

/// A new action: its place in the part, its id and its definition.
struct Numbered {
    place: usize,
    id: Uuid,
    new: New,
}

impl Part<'_> {
    fn create(&self, asked: &[ToCreate]) -> Result<Vec<Uuid>, SqlError> {
        let mut ids = vec![Uuid::nil(); asked.len()];
        let mut waiting = Vec::with_capacity(asked.len());
        for (
            place,
            ToCreate {
                changes,
                on_existing,
            },
        ) in asked.iter().enumerate()
        {
            let numbered = |error: SqlError| self.numbered(place, error);
            ids[place] = match on_existing {
                OnExisting::Fail => {
                    let creation = Creation::plain(self.author, self.owner_id, changes);
                    let new = creation
                        .new_action()
                        .map_err(|invalid| numbered(invalid.into()))?;
                    self.author
                        .check_runnable(self.owner_id, &new.created.action.definition)
                        .map_err(numbered)?;
                    let id = dispatch_id::random(new.now);
                    waiting.push(Numbered { place, id, new });
                    id
                }
                // It depends on what is there, the definitions before it included.
                _ => {
                    self.insert(std::mem::take(&mut waiting))?;
                    create::create(self.author, self.owner_id, changes, *on_existing)
                        .map_err(numbered)?
                }
            };
        }
        self.insert(waiting)?;
        Ok(ids)
    }

    fn numbered(&self, place: usize, error: SqlError) -> SqlError {
        error.of_element(self.first + place)
    }

    /// Inserts new actions, with all that follows from their creation.
    fn insert(&self, all: Vec<Numbered>) -> Result<(), SqlError> {
        if all.is_empty() {
            return Ok(());
        }
        home::settle_first();
        let rows: Vec<_> = all
            .iter()
            .map(|one| (one.id, &one.new.created.action, one.new.now))
            .collect();
        let inserted = store::insert_definitions(self.owner_id, &rows);
        if let Some(one) = all.iter().find(|one| !inserted.contains(&one.id)) {
            return Err(self.numbered(one.place, one.new.is_taken().into()));
        }
        store::insert_states(&rows);
        self.check_quotas(&all)?;
        let environment = environment();
        let mut changes = Vec::with_capacity(all.len());
        for Numbered { id, new, .. } in &all {
            let action = &new.created.action;
            author::wake(None, action.timer.due_at);
            let set = author::alarms_of(&action.definition);
            if set.any {
                alarms::watch(*id, set, true, new.now);
            }
            changes.push(events::recorded(&new.created.event, *id, self.owner_id));
            notices::of_creation(action, new.now, &environment);
        }
        history::record_changes(&changes, self.author.actor());
        Ok(())
    }

    /// Each tenant and subject once, when all of its actions are there: the last of them is the one too many.
    fn check_quotas(&self, all: &[Numbered]) -> Result<(), SqlError> {
        let mut last = HashMap::new();
        for one in all {
            let definition = &one.new.created.action.definition;
            last.insert((definition.tenant(), definition.subject()), one.place);
        }
        let mut last: Vec<_> = last.into_iter().collect();
        last.sort_unstable_by_key(|(_, place)| *place);
        for ((tenant, subject), place) in last {
            quota::check(self.owner_id, tenant, subject)
                .map_err(|error| self.numbered(place, error))?;
        }
        Ok(())
    }
}
