//! The functions of SQL that write one action. Each has a form that takes an id, and one that takes an id or a name.

use super::arguments::{self, Special};
use super::author::{Author, Summary};
use super::changes_json::{self, Asked};
use super::create;
use super::delete;
use super::owner::NewOwner;
use super::resolve::{resolve, unknown_id};
use crate::access;
use crate::commands;
use crate::pg::error::{OrRaise, SqlError, given};
use crate::pg::jsonb::Jsonb;
use crate::pg::planner::PlannerPins;
use crate::pg::query::{pg_uuid, plain_uuid, queries};
use crate::pg::srf::ResultSet;
use crate::pg::time;
use crate::runtime::engine;
use pgrx::datum::{TimestampWithTimeZone, Uuid as PgUuid};
use pgrx::pg_sys::{self, FunctionCallInfo};
use pgrx::prelude::*;
use recur_core::action::{self, Changes, Column, Value};
use recur_core::command;
use recur_core::policy::Overlap;
use uuid::Uuid;

queries! {
    KEPT_CONTEXT = "actions/queries/kept_context.sql" (UUIDOID, INT4OID);
}

/// `recur.create(…)`.
#[pg_extern(sql = false)]
fn create(call: FunctionCallInfo) -> PgUuid {
    let given = arguments::read(call, &Special::NONE).or_raise();
    let changes = Changes::from_arguments(given.columns).or_raise();
    let author = Author::current();
    let owner_id = access::own_id();
    let _pins = PlannerPins::set();
    let id = engine::as_engine(|| create::create(&author, owner_id, &changes, given.on_existing));
    pg_uuid(id.or_raise())
}

const SQL_ARGUMENTS: Special = Special {
    renamed: &[],
    others: &["command", "timeout"],
};

/// `recur.create_sql(…)`: the command becomes the payload of an action of the reserved provider.
#[pg_extern(sql = false)]
fn create_sql(call: FunctionCallInfo) -> PgUuid {
    let mut given = arguments::read(call, &SQL_ARGUMENTS).or_raise();
    let payload = commands::payload(given.text("command"), given.interval("timeout")).or_raise();
    given.columns.extend([
        (Column::Provider, Value::Text(command::PROVIDER.to_owned())),
        (
            Column::ActionType,
            Value::Text(command::ACTION_TYPE.to_owned()),
        ),
        (Column::Payload, Value::Json(payload)),
    ]);
    if !given
        .columns
        .iter()
        .any(|(column, _)| *column == Column::Overlap)
    {
        let one_at_a_time = Overlap::QueueOne.to_string();
        given
            .columns
            .push((Column::Overlap, Value::Text(one_at_a_time)));
    }
    let changes = Changes::from_arguments(given.columns).or_raise();
    let author = Author::current();
    let owner_id = access::own_id();
    let _pins = PlannerPins::set();
    let id = engine::as_engine(|| create::create(&author, owner_id, &changes, given.on_existing));
    pg_uuid(id.or_raise())
}

/// `recur.update(id, changes, if_updated_at)`.
#[pg_extern(sql = false)]
fn update(
    id: Option<PgUuid>,
    changes: Option<Jsonb>,
    if_updated_at: Option<TimestampWithTimeZone>,
    call: FunctionCallInfo,
) {
    update_by_id(known(id), changes, if_updated_at, call);
}

/// `recur.update(action, changes, namespace, tenant, subject, if_updated_at)`.
#[pg_extern(sql = false)]
fn update_named(
    action: Option<&str>,
    changes: Option<Jsonb>,
    namespace: Option<&str>,
    tenant: Option<&str>,
    subject: Option<&str>,
    if_updated_at: Option<TimestampWithTimeZone>,
    call: FunctionCallInfo,
) {
    update_by_id(
        resolve(action, namespace, tenant, subject).or_raise(),
        changes,
        if_updated_at,
        call,
    );
}

fn update_by_id(
    id: Uuid,
    changes: Option<Jsonb>,
    if_updated_at: Option<TimestampWithTimeZone>,
    call: FunctionCallInfo,
) {
    let expected = if_updated_at.map(|at| time::instant("if_updated_at", at).or_raise());
    let Asked { changes, owner } = given("changes", changes)
        .and_then(changes_json::read_with_owner)
        .or_raise();
    let owner = owner.map(|name| NewOwner::named("owner", &name).or_raise());
    let changes_context = changes.get(Column::Context).is_some();
    respond(call, |author| {
        let locked = author.lock_known(id, changes_context)?;
        if let Some(expected) = expected {
            locked.check_unchanged_since(expected)?;
        }
        let summary = author.change(locked, &changes)?;
        if let Some(owner) = owner {
            owner.take_alone(author, &author.lock_known(id, false)?)?;
        }
        Ok(summary)
    });
}

/// `recur.pause(id, reason)`.
#[pg_extern(sql = false)]
fn pause(id: Option<PgUuid>, reason: Option<&str>, call: FunctionCallInfo) {
    pause_by_id(known(id), reason, call);
}

/// `recur.pause(action, reason, namespace, tenant, subject)`.
#[pg_extern(sql = false)]
fn pause_named(
    action: Option<&str>,
    reason: Option<&str>,
    namespace: Option<&str>,
    tenant: Option<&str>,
    subject: Option<&str>,
    call: FunctionCallInfo,
) {
    pause_by_id(
        resolve(action, namespace, tenant, subject).or_raise(),
        reason,
        call,
    );
}

fn pause_by_id(id: Uuid, reason: Option<&str>, call: FunctionCallInfo) {
    respond(call, |author| {
        let locked = author.lock_known(id, false)?;
        let changes = action::pause(&locked.action, reason)?;
        author.change(locked, &changes)
    });
}

/// `recur.resume(id)`.
#[pg_extern(sql = false)]
fn resume(id: Option<PgUuid>, call: FunctionCallInfo) {
    resume_by_id(known(id), call);
}

/// `recur.resume(action, namespace, tenant, subject)`.
#[pg_extern(sql = false)]
fn resume_named(
    action: Option<&str>,
    namespace: Option<&str>,
    tenant: Option<&str>,
    subject: Option<&str>,
    call: FunctionCallInfo,
) {
    resume_by_id(resolve(action, namespace, tenant, subject).or_raise(), call);
}

fn resume_by_id(id: Uuid, call: FunctionCallInfo) {
    respond(call, |author| {
        let locked = author.lock_known(id, false)?;
        let changes = action::resume(&locked.action)?;
        author.change(locked, &changes)
    });
}

/// `recur.delete(id)`.
#[pg_extern(sql = false)]
fn delete(id: Option<PgUuid>, call: FunctionCallInfo) {
    delete_by_id(known(id), call);
}

/// `recur.delete(action, namespace, tenant, subject)`.
#[pg_extern(sql = false)]
fn delete_named(
    action: Option<&str>,
    namespace: Option<&str>,
    tenant: Option<&str>,
    subject: Option<&str>,
    call: FunctionCallInfo,
) {
    delete_by_id(resolve(action, namespace, tenant, subject).or_raise(), call);
}

fn delete_by_id(id: Uuid, call: FunctionCallInfo) {
    respond(call, |author| {
        delete::delete(author, id)?.ok_or_else(|| unknown_id(&id.to_string()))
    });
}

/// `recur.restore_context(id, version)`.
#[pg_extern(sql = false)]
fn restore_context(id: Option<PgUuid>, version: Option<i32>, call: FunctionCallInfo) {
    restore_by_id(known(id), version, call);
}

/// `recur.restore_context(action, version, namespace, tenant, subject)`.
#[pg_extern(sql = false)]
fn restore_context_named(
    action: Option<&str>,
    version: Option<i32>,
    namespace: Option<&str>,
    tenant: Option<&str>,
    subject: Option<&str>,
    call: FunctionCallInfo,
) {
    restore_by_id(
        resolve(action, namespace, tenant, subject).or_raise(),
        version,
        call,
    );
}

fn restore_by_id(id: Uuid, version: Option<i32>, call: FunctionCallInfo) {
    respond(call, |author| {
        let locked = author.lock_known(id, true)?;
        let context = kept_context(id, version).ok_or_else(|| {
            let shown = version.map_or("NULL".to_owned(), |version| version.to_string());
            let name = locked.action.definition.name();
            SqlError::no_data_found(format!(
                "action \"{name}\" has no context of version {shown}"
            ))
            .with_hint("recur.context_history() lists the versions that are kept.")
        })?;
        let context = context.map_or(Value::Null, Value::Json);
        author.change(
            locked,
            &Changes::from_arguments([(Column::Context, context)])?,
        )
    });
}

/// The context of a version, if that version is kept. The inner None is a context that was cleared.
fn kept_context(id: Uuid, version: Option<i32>) -> Option<Option<Jsonb>> {
    // SAFETY: a variable of this process: the memory context of the call, in which the value has to live.
    let context = unsafe { pg_sys::CurrentMemoryContext };
    let arguments = [pg_uuid(id).into(), version.into()];
    KEPT_CONTEXT.with(|query| {
        query.row(&arguments, |row| {
            row.get::<Jsonb>(1).map(|kept| kept.copy_to(context))
        })
    })
}

fn known(id: Option<PgUuid>) -> Uuid {
    let id = id.map(plain_uuid).ok_or_else(|| unknown_id("NULL"));
    id.or_raise()
}

/// Does the work as the engine, and returns one row: the new state of the action.
fn respond(call: FunctionCallInfo, work: impl FnOnce(&Author) -> Result<Summary, SqlError>) {
    let author = Author::current();
    let result = ResultSet::begin(call);
    let _pins = PlannerPins::set();
    let summary = engine::as_engine(|| work(&author));
    summary.or_raise().put(&result);
}
