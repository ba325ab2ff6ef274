//! Plain DML on `recur.recurring_actions`: triggers that do what the functions do.

use super::author::Author;
use super::owner::NewOwner;
use super::record::{self, Record};
use super::store::{self, Stored};
use super::{create, delete};
use crate::access;
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::jsonb::Jsonb;
use crate::pg::planner::PlannerPins;
use crate::pg::{compat, time};
use crate::runtime::engine;
use chrono::{DateTime, Utc};
use pgrx::pg_sys;
use pgrx::prelude::*;
use pgrx::tupdesc::PgTupleDesc;
use recur_core::action::{Changes, Column, OnExisting};
use uuid::Uuid;

/// What a trigger returns: the stored row, or none if no row was written.
type Returned<'a> = Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, PgTriggerError>;

/// INSTEAD OF INSERT.
#[pg_trigger(sql = false)]
fn insert_action<'a>(trigger: &'a PgTrigger<'a>) -> Returned<'a> {
    let row = record(trigger, trigger.new())?;
    let changes = row
        .values()
        .and_then(|values| Ok(Changes::from_insert(values)?))
        .or_raise();
    let on_existing = match row.is_true("duplicate") {
        true => OnExisting::AddAnother,
        false => OnExisting::Fail,
    };
    let author = Author::current();
    let owner_id = access::owner_to_act_as(row.text("owner").as_deref()).or_raise();
    let _pins = PlannerPins::set();
    let stored = engine::as_engine(|| {
        let id = create::create(&author, owner_id, &changes, on_existing)?;
        Ok::<_, SqlError>(store::read(id, false))
    });
    returned(trigger, stored.or_raise())
}

/// INSTEAD OF UPDATE.
#[pg_trigger(sql = false)]
fn update_action<'a>(trigger: &'a PgTrigger<'a>) -> Returned<'a> {
    let (old, new) = (
        record(trigger, trigger.old())?,
        record(trigger, trigger.new())?,
    );
    let owner = new
        .text("owner")
        .filter(|_| old.text("owner") != new.text("owner"));
    let owner = owner.map(|name| NewOwner::named("owner", &name).or_raise());
    let changes = changes(&old, &new).or_raise();
    let changes_context = changes.get(Column::Context).is_some();
    let author = Author::current();
    let _pins = PlannerPins::set();
    let stored = engine::as_engine(|| {
        let id = id(&old);
        // Another session has deleted the action since the statement found it.
        let Some(locked) = author.lock(id, changes_context) else {
            return Ok(None);
        };
        author.change(locked, &changes)?;
        if let Some(owner) = owner {
            owner.take_alone(&author, &author.lock_known(id, false)?)?;
        }
        Ok::<_, SqlError>(store::read(id, false))
    });
    returned(trigger, stored.or_raise())
}

/// INSTEAD OF DELETE.
#[pg_trigger(sql = false)]
fn delete_action<'a>(trigger: &'a PgTrigger<'a>) -> Returned<'a> {
    let old = record(trigger, trigger.old())?;
    let author = Author::current();
    let _pins = PlannerPins::set();
    let deleted = engine::as_engine(|| delete::delete(&author, id(&old)));
    Ok(deleted.or_raise().and_then(|_| trigger.old()))
}

fn changes(old: &Record, new: &Record) -> Result<Changes<Jsonb>, SqlError> {
    let (old, new) = (old.values()?, new.values()?);
    let pairs = old
        .into_iter()
        .zip(new)
        .map(|((name, old), (_, new))| (name, old, new))
        .filter(|(name, _, new)| *name != "owner" || new.is_null());
    Ok(Changes::from_update(pairs)?)
}

fn id(row: &Record) -> Uuid {
    let id = row.text("id").and_then(|id| Uuid::parse_str(&id).ok());
    id.unwrap_or_else(|| pgrx::error!("pg_recur: a row of recur.recurring_actions has no id"))
}

/// A row of the trigger.
fn record(
    trigger: &PgTrigger,
    tuple: Option<PgHeapTuple<AllocatedByPostgres>>,
) -> Result<Record, PgTriggerError> {
    let Some(tuple) = tuple else {
        pgrx::error!("pg_recur: a trigger of recur.recurring_actions was called without a row");
    };
    let relation = trigger.relation()?;
    // SAFETY: the tuple has the row type of the trigger's relation, and lives until the trigger returns.
    Ok(unsafe { Record::of_tuple(tuple.into_pg(), relation.rd_att) })
}

/// The stored row in the form of the view.
fn returned<'a>(trigger: &'a PgTrigger<'a>, stored: Option<Stored>) -> Returned<'a> {
    let Some(stored) = stored else {
        return Ok(None);
    };
    let relation = trigger.relation()?;
    let descriptor = relation.rd_att;
    // SAFETY: the relation is open while its trigger runs; there are as many values as columns, each of its column's
    // type.
    unsafe {
        let columns = (*descriptor).natts as usize;
        let (mut values, mut nulls) = (vec![pg_sys::Datum::null(); columns], vec![true; columns]);
        for column in 0..columns {
            let datum = shown(&stored, compat::attribute(descriptor, column));
            nulls[column] = datum.is_none();
            values[column] = datum.unwrap_or(pg_sys::Datum::null());
        }
        let tuple = pg_sys::heap_form_tuple(descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
        Ok(Some(PgHeapTuple::from_heap_tuple(
            PgTupleDesc::from_pg_unchecked(descriptor),
            tuple,
        )))
    }
}

fn instant(instant: Option<DateTime<Utc>>) -> (pg_sys::Oid, Option<pg_sys::Datum>) {
    let datum = instant.map(time::timestamptz).into_datum();
    (pg_sys::TIMESTAMPTZOID, datum)
}

/// The value of a column of the view.
fn shown(stored: &Stored, column: &pg_sys::FormData_pg_attribute) -> Option<pg_sys::Datum> {
    let name = record::column_name(column);
    let (type_oid, datum) = match name {
        "owner" => (pg_sys::TEXTOID, stored.owner().into_datum()),
        "next_run_at" => instant(stored.action().timer.next_due()),
        "last_run_at" => instant(stored.action().timer.last_due()),
        name => match stored.field(name) {
            Some(field) => (field.type_oid, field.datum),
            None => {
                pgrx::error!("pg_recur: no table has the column {name} of recur.recurring_actions")
            }
        },
    };
    if type_oid != column.atttypid {
        pgrx::error!(
            "pg_recur: column {name} of recur.recurring_actions is of another type than in its table"
        );
    }
    datum
}
