//! Queries that are prepared once per process, always bound, and run on the read-write path.

use crate::pg::time;
use chrono::{DateTime, Utc};
use pgrx::datum::{DatumWithOid, TimestampWithTimeZone, Uuid as PgUuid};
use pgrx::pg_sys::{self, BuiltinOid, PgOid};
use pgrx::prelude::*;
use pgrx::spi::{OwnedPreparedStatement, SpiClient, SpiResult, SpiTupleTable};
use std::cell::OnceCell;
use uuid::Uuid;

/// A query that is prepared on first use and kept for the life of the process.
pub struct Query {
    pub sql: &'static str,
    pub parameters: &'static [BuiltinOid],
    pub plan: OnceCell<&'static OwnedPreparedStatement>,
}

macro_rules! queries {
    ($($name:ident = $file:literal ($($parameter:ident),*);)*) => {
        thread_local! {
            $(static $name: $crate::dispatch::query::Query = const { $crate::dispatch::query::Query {
                sql: include_str!(concat!("../../sql/queries/", $file)),
                parameters: &[$(pgrx::pg_sys::BuiltinOid::$parameter),*],
                plan: std::cell::OnceCell::new(),
            } };)*
        }
    };
}

pub(super) use queries;

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

    pub fn rows<T>(
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

    pub fn execute(&self, arguments: &[DatumWithOid]) -> SpiResult<()> {
        Spi::connect_mut(|client| {
            let plan = self.plan(client)?;
            client.update(plan, None, arguments)?;
            Ok(())
        })
    }
}

pub fn required<T>(value: Option<T>) -> SpiResult<T> {
    value.ok_or(pgrx::spi::SpiError::InvalidPosition)
}

pub fn uuid_at(row: &SpiTupleTable, ordinal: usize) -> SpiResult<Uuid> {
    let value: PgUuid = required(row.get(ordinal)?)?;
    Ok(Uuid::from_bytes(*value.as_bytes()))
}

pub fn instant_at(row: &SpiTupleTable, ordinal: usize) -> SpiResult<Option<DateTime<Utc>>> {
    let value: Option<TimestampWithTimeZone> = row.get(ordinal)?;
    Ok(value.and_then(|value| time::from_micros(pg_sys::TimestampTz::from(value))))
}

pub fn uuids(values: impl IntoIterator<Item = Uuid>) -> Vec<PgUuid> {
    values
        .into_iter()
        .map(|value| PgUuid::from_bytes(value.into_bytes()))
        .collect()
}
