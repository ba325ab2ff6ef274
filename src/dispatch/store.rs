//! The dispatcher's SQL: the only place of this module that talks to the database.
//!
//! Each query stands in a file of its own under `sql/queries/`, is prepared once per process and is always bound.

use super::decide::{Decision, Then};
use crate::pg::time;
use chrono::{DateTime, Utc};
use pgrx::datum::{DatumWithOid, TimestampWithTimeZone, Uuid as PgUuid};
use pgrx::pg_sys::{self, BuiltinOid, PgOid};
use pgrx::prelude::*;
use pgrx::spi::{OwnedPreparedStatement, SpiClient, SpiResult, SpiTupleTable};
use std::cell::OnceCell;
use uuid::Uuid;

/// A due timer that this transaction has locked.
pub struct LockedTimer {
    pub action: Uuid,
    pub next_run_at: DateTime<Utc>,
    pub run_count: i64,
}

/// What the decision needs of a definition, as stored: not yet parsed.
pub struct StoredDefinition {
    pub action: Uuid,
    pub schedule: String,
    pub timezone: String,
    pub starts_at: Option<DateTime<Utc>>,
    pub ends_at: Option<DateTime<Utc>>,
    pub max_runs: Option<i64>,
    pub on_dst_gap: String,
    pub on_dst_fold: String,
    pub notify_channel: Option<String>,
}

/// A dispatch that was inserted, as far as a notification tells of it.
pub struct Announced {
    pub id: Uuid,
    pub action: Uuid,
    pub scheduled_at: DateTime<Utc>,
    pub namespace: String,
    pub tenant: String,
    pub provider: String,
    pub action_type: String,
}

pub fn lock_due(now: DateTime<Utc>, limit: i64) -> SpiResult<Vec<LockedTimer>> {
    LOCK_DUE.with(|query| {
        query.rows(&[time::timestamptz(now).into(), limit.into()], |row| {
            Ok(LockedTimer {
                action: uuid_at(row, 1)?,
                next_run_at: required(instant_at(row, 2)?)?,
                run_count: required(row.get(3)?)?,
            })
        })
    })
}

pub fn read_definitions(actions: Vec<Uuid>) -> SpiResult<Vec<StoredDefinition>> {
    READ_DEFINITIONS.with(|query| {
        query.rows(&[uuids(actions).into()], |row| {
            Ok(StoredDefinition {
                action: uuid_at(row, 1)?,
                schedule: required(row.get(2)?)?,
                timezone: required(row.get(3)?)?,
                starts_at: instant_at(row, 4)?,
                ends_at: instant_at(row, 5)?,
                max_runs: row.get(6)?,
                on_dst_gap: required(row.get(7)?)?,
                on_dst_fold: required(row.get(8)?)?,
                notify_channel: row.get(9)?,
            })
        })
    })
}

/// (dispatch id, action, occurrence), as arrays.
#[derive(Default)]
pub struct NewDispatches {
    pub ids: Vec<Uuid>,
    pub actions: Vec<Uuid>,
    pub occurrences: Vec<DateTime<Utc>>,
}

pub fn insert_dispatches(new: NewDispatches) -> SpiResult<Vec<Announced>> {
    if new.ids.is_empty() {
        return Ok(Vec::new());
    }
    let occurrences: Vec<_> = new.occurrences.into_iter().map(time::timestamptz).collect();
    let arguments = [
        uuids(new.ids).into(),
        uuids(new.actions).into(),
        occurrences.into(),
    ];
    INSERT_DISPATCHES.with(|query| {
        query.rows(&arguments, |row| {
            Ok(Announced {
                id: uuid_at(row, 1)?,
                action: uuid_at(row, 2)?,
                scheduled_at: required(instant_at(row, 3)?)?,
                namespace: required(row.get(4)?)?,
                tenant: required(row.get(5)?)?,
                provider: required(row.get(6)?)?,
                action_type: required(row.get(7)?)?,
            })
        })
    })
}

pub fn advance_timers(decisions: &[(Uuid, Decision)]) -> SpiResult<()> {
    if decisions.is_empty() {
        return Ok(());
    }
    let actions = decisions.iter().map(|(action, _)| *action).collect();
    let fired: Vec<_> = decisions
        .iter()
        .map(|(_, decision)| decision.fire.map(time::timestamptz))
        .collect();
    let (next, ended): (Vec<_>, Vec<_>) = decisions
        .iter()
        .map(|(_, decision)| match decision.then {
            Then::WaitUntil(next) => (Some(time::timestamptz(next)), None),
            Then::End(reason) => (None, Some(reason.name())),
        })
        .unzip();
    let arguments = [
        uuids(actions).into(),
        fired.into(),
        next.into(),
        ended.into(),
    ];
    ADVANCE_TIMERS.with(|query| query.execute(&arguments))
}

pub fn record_errors(errors: &[(Uuid, String)], now: DateTime<Utc>) -> SpiResult<()> {
    if errors.is_empty() {
        return Ok(());
    }
    let (actions, messages): (Vec<_>, Vec<_>) = errors.iter().cloned().unzip();
    let arguments = [
        uuids(actions).into(),
        messages.into(),
        time::timestamptz(now).into(),
    ];
    RECORD_ERRORS.with(|query| query.execute(&arguments))
}

/// The next instant at which anything is due.
pub fn next_instant() -> SpiResult<Option<DateTime<Utc>>> {
    NEXT_INSTANT.with(|query| {
        let rows = query.rows(&[], |row| instant_at(row, 1))?;
        Ok(rows.into_iter().flatten().next())
    })
}

/// (channel, payload), as arrays.
#[derive(Default)]
pub struct Notifications {
    pub channels: Vec<String>,
    pub payloads: Vec<String>,
}

pub fn notify(notifications: Notifications) -> SpiResult<()> {
    if notifications.payloads.is_empty() {
        return Ok(());
    }
    let arguments = [notifications.channels.into(), notifications.payloads.into()];
    NOTIFY.with(|query| query.execute(&arguments))
}

/// (action, kind, detail), as arrays.
#[derive(Default)]
pub struct NewEvents {
    pub actions: Vec<Uuid>,
    pub kinds: Vec<&'static str>,
    pub details: Vec<String>,
}

pub fn record_events(events: NewEvents) -> SpiResult<()> {
    if events.actions.is_empty() {
        return Ok(());
    }
    let arguments = [
        uuids(events.actions).into(),
        events.kinds.into(),
        events.details.into(),
    ];
    RECORD_EVENTS.with(|query| query.execute(&arguments))
}

/// A query that is prepared on first use and kept for the life of the process.
struct Query {
    sql: &'static str,
    parameters: &'static [BuiltinOid],
    plan: OnceCell<&'static OwnedPreparedStatement>,
}

macro_rules! queries {
    ($($name:ident = $file:literal ($($parameter:ident),*);)*) => {
        thread_local! {
            $(static $name: Query = const { Query {
                sql: include_str!(concat!("../../sql/queries/", $file)),
                parameters: &[$(BuiltinOid::$parameter),*],
                plan: OnceCell::new(),
            } };)*
        }
    };
}

queries! {
    LOCK_DUE = "lock_due.sql" (TIMESTAMPTZOID, INT8OID);
    READ_DEFINITIONS = "read_definitions.sql" (UUIDARRAYOID);
    INSERT_DISPATCHES = "insert_dispatches.sql" (UUIDARRAYOID, UUIDARRAYOID, TIMESTAMPTZARRAYOID);
    ADVANCE_TIMERS = "advance_timers.sql" (UUIDARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, TEXTARRAYOID);
    RECORD_ERRORS = "record_errors.sql" (UUIDARRAYOID, TEXTARRAYOID, TIMESTAMPTZOID);
    NEXT_INSTANT = "next_instant.sql" ();
    NOTIFY = "notify.sql" (TEXTARRAYOID, TEXTARRAYOID);
    RECORD_EVENTS = "record_events.sql" (UUIDARRAYOID, TEXTARRAYOID, TEXTARRAYOID);
}

impl Query {
    fn plan(&self, client: &SpiClient) -> SpiResult<&'static OwnedPreparedStatement> {
        if let Some(plan) = self.plan.get() {
            return Ok(plan);
        }
        let parameters: Vec<PgOid> = self
            .parameters
            .iter()
            .map(|&oid| PgOid::BuiltIn(oid))
            .collect();
        // Leaked on purpose: it lives as long as the process, and must not be freed after Postgres is gone.
        let plan = Box::leak(Box::new(client.prepare_mut(self.sql, &parameters)?.keep()));
        Ok(self.plan.get_or_init(|| plan))
    }

    fn rows<T>(
        &self,
        arguments: &[DatumWithOid],
        read: impl Fn(&SpiTupleTable) -> SpiResult<T>,
    ) -> SpiResult<Vec<T>> {
        Spi::connect_mut(|client| {
            let plan = self.plan(client)?;
            let mut table = client.update(plan, None, arguments)?;
            let mut rows = Vec::with_capacity(table.len());
            while table.next().is_some() {
                rows.push(read(&table)?);
            }
            Ok(rows)
        })
    }

    fn execute(&self, arguments: &[DatumWithOid]) -> SpiResult<()> {
        Spi::connect_mut(|client| {
            let plan = self.plan(client)?;
            client.update(plan, None, arguments)?;
            Ok(())
        })
    }
}

fn required<T>(value: Option<T>) -> SpiResult<T> {
    value.ok_or(pgrx::spi::SpiError::InvalidPosition)
}

fn uuid_at(row: &SpiTupleTable, ordinal: usize) -> SpiResult<Uuid> {
    let value: PgUuid = required(row.get(ordinal)?)?;
    Ok(Uuid::from_bytes(*value.as_bytes()))
}

fn instant_at(row: &SpiTupleTable, ordinal: usize) -> SpiResult<Option<DateTime<Utc>>> {
    let value: Option<TimestampWithTimeZone> = row.get(ordinal)?;
    Ok(value.and_then(|value| time::from_micros(pg_sys::TimestampTz::from(value))))
}

fn uuids(values: Vec<Uuid>) -> Vec<PgUuid> {
    values
        .into_iter()
        .map(|value| PgUuid::from_bytes(value.into_bytes()))
        .collect()
}
