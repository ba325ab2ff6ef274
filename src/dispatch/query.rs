//! Queries that are prepared once per process, always bound, and run on the read-write path: each sees what was committed
//! before it began.

use crate::pg::time;
use chrono::{DateTime, Utc};
use pgrx::datum::{DatumWithOid, TimestampWithTimeZone, Uuid as PgUuid};
use pgrx::pg_sys::{self, BuiltinOid, PgOid};
use pgrx::prelude::*;
use pgrx::spi::{OwnedPreparedStatement, SpiClient, SpiResult};
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

pub(crate) use queries;

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
        read: impl Fn(&Row) -> SpiResult<T>,
    ) -> SpiResult<Vec<T>> {
        Spi::connect_mut(|client| {
            let plan = self.plan(client)?;
            // Not `update`: it would give a transaction id, and a commit to be logged, to a turn that finds nothing to do.
            client.select(plan, None, arguments)?;
            // SAFETY: SPI has just put the result there, and nothing else runs until it has been read.
            let Some(table) = (unsafe { pg_sys::SPI_tuptable.as_ref() }) else {
                return Ok(Vec::new());
            };
            let tuples = unsafe { std::slice::from_raw_parts(table.vals, table.numvals as usize) };
            let columns = unsafe { (*table.tupdesc).natts } as usize;
            let mut row = Row {
                values: vec![pg_sys::Datum::null(); columns],
                nulls: vec![true; columns],
            };
            let mut rows = Vec::with_capacity(tuples.len());
            for tuple in tuples {
                unsafe {
                    pg_sys::heap_deform_tuple(
                        *tuple,
                        table.tupdesc,
                        row.values.as_mut_ptr(),
                        row.nulls.as_mut_ptr(),
                    );
                }
                rows.push(read(&row)?);
            }
            Ok(rows)
        })
    }

    /// Returns how many rows it wrote.
    pub fn execute(&self, arguments: &[DatumWithOid]) -> SpiResult<usize> {
        Spi::connect_mut(|client| {
            let plan = self.plan(client)?;
            Ok(client.select(plan, None, arguments)?.len())
        })
    }
}

/// A row of a result, taken apart once: asking the server for each column by itself takes longer than the query.
pub struct Row {
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
}

impl Row {
    /// The column's type must be the one that the query gives it.
    pub fn get<T: FromDatum>(&self, ordinal: usize) -> SpiResult<Option<T>> {
        let column = ordinal - 1;
        let (Some(value), Some(is_null)) = (self.values.get(column), self.nulls.get(column)) else {
            return Err(pgrx::spi::SpiError::InvalidPosition);
        };
        // SAFETY: the value lives in SPI's memory while the row is read.
        Ok(unsafe { T::from_datum(*value, *is_null) })
    }
}

pub fn required<T>(value: Option<T>) -> SpiResult<T> {
    value.ok_or(pgrx::spi::SpiError::InvalidPosition)
}

pub fn uuid_at(row: &Row, ordinal: usize) -> SpiResult<Uuid> {
    let value: PgUuid = required(row.get(ordinal)?)?;
    Ok(Uuid::from_bytes(*value.as_bytes()))
}

pub fn instant_at(row: &Row, ordinal: usize) -> SpiResult<Option<DateTime<Utc>>> {
    let value: Option<TimestampWithTimeZone> = row.get(ordinal)?;
    Ok(value.and_then(|value| time::from_micros(pg_sys::TimestampTz::from(value))))
}

pub fn uuids(values: impl IntoIterator<Item = Uuid>) -> Vec<PgUuid> {
    values
        .into_iter()
        .map(|value| PgUuid::from_bytes(value.into_bytes()))
        .collect()
}
