//! Queries that are prepared once per process, always bound, and run on the read-write path: each sees what was
//! committed before it began.
//!
//! Every datum that comes back is checked against the type it is read as. A catalog that says something else leads to
//! an error.

use super::{columns, compat, time};
use chrono::{DateTime, Utc};
use pgrx::datum::{DatumWithOid, TimestampWithTimeZone, Uuid as PgUuid};
use pgrx::pg_sys::{self, BuiltinOid, PgOid};
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::CString;
use uuid::Uuid;

/// A query that is prepared on first use and kept for the life of the process.
pub struct Query {
    sql: &'static str,
    /// What stands for the placeholders of the text: (name, SQL).
    variant: &'static [(&'static str, &'static str)],
    parameters: &'static [BuiltinOid],
    plan: Cell<pg_sys::SPIPlanPtr>,
    /// What `{{number}}` stands for in the text that the plan is of.
    number: Cell<i16>,
}

/// Declares queries: a name, its file under `sql/`, what stands for its placeholders, the types of its parameters.
macro_rules! queries {
    ($(
        $name:ident = $file:literal
        $({$($placeholder:ident: $text:expr),* $(,)?})?
        ($($parameter:ident),* $(,)?);
    )*) => {
        thread_local! {
            $(static $name: $crate::pg::query::Query = const { $crate::pg::query::Query::new(
                include_str!(concat!("../../sql/", $file)),
                &[$($((stringify!($placeholder), $text)),*)?],
                &[$(pgrx::pg_sys::BuiltinOid::$parameter),*],
            ) };)*
        }
    };
}

/// A part of a query, from its file under `sql/`.
macro_rules! fragment {
    ($file:literal) => {
        include_str!(concat!("../../sql/", $file))
    };
}

pub(crate) use {fragment, queries};

impl Query {
    pub const fn new(
        sql: &'static str,
        variant: &'static [(&'static str, &'static str)],
        parameters: &'static [BuiltinOid],
    ) -> Query {
        Query {
            sql,
            variant,
            parameters,
            plan: Cell::new(std::ptr::null_mut()),
            number: Cell::new(0),
        }
    }

    /// The query for a number, such as that of a partition. The plan is made again where it changes.
    pub fn of_number(&self, number: i16) -> &Query {
        if self.number.replace(number) != number {
            let plan = self.plan.replace(std::ptr::null_mut());
            if !plan.is_null() {
                // SAFETY: the plan was kept by this query alone, which does not run now.
                unsafe { pg_sys::SPI_freeplan(plan) };
            }
        }
        self
    }

    /// Runs the query and reads each row of its result.
    pub fn rows<T>(&self, arguments: &[DatumWithOid], read: impl FnMut(&Row) -> T) -> Vec<T> {
        self.read(arguments, false, read)
    }

    fn read<T>(
        &self,
        arguments: &[DatumWithOid],
        is_read_only: bool,
        mut read: impl FnMut(&Row) -> T,
    ) -> Vec<T> {
        self.run(arguments, is_read_only, std::ptr::null_mut(), || {
            // SAFETY: the statement has just left its result there, and no other one runs until it has been read.
            let Some(table) = (unsafe { pg_sys::SPI_tuptable.as_ref() }) else {
                return Vec::new();
            };
            // SAFETY: SPI says how many tuples there are.
            let tuples = unsafe { std::slice::from_raw_parts(table.vals, table.numvals as usize) };
            // SAFETY: the descriptor belongs to the result.
            let mut row = unsafe { Row::of(table.tupdesc) };
            tuples
                .iter()
                .map(|tuple| {
                    // SAFETY: the tuple is of this descriptor.
                    unsafe { row.fill(*tuple, table.tupdesc) };
                    read(&row)
                })
                .collect()
        })
    }

    /// The first row, if there is one.
    pub fn row<T>(&self, arguments: &[DatumWithOid], read: impl FnMut(&Row) -> T) -> Option<T> {
        self.rows(arguments, read).into_iter().next()
    }

    /// Runs the query and returns how many rows it wrote or returned.
    pub fn execute(&self, arguments: &[DatumWithOid]) -> usize {
        self.run(arguments, false, std::ptr::null_mut(), processed)
    }

    /// The rows that are committed now, also in a transaction that sees everything else as it was when it began. Only
    /// for queries that lock and write nothing.
    pub fn latest_rows<T>(
        &self,
        arguments: &[DatumWithOid],
        read: impl FnMut(&Row) -> T,
    ) -> Vec<T> {
        // Parallel workers have the snapshot of their leader, and can take no other.
        // SAFETY: a variable of this process.
        if unsafe { pg_sys::IsInParallelMode() } {
            return self.read(arguments, true, read);
        }
        // SAFETY: the snapshot is popped again, or dropped by the transaction that an error ends.
        unsafe {
            pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot());
            let rows = self.read(arguments, true, read);
            pg_sys::PopActiveSnapshot();
            rows
        }
    }

    /// Runs the query, sends its rows to the receiver as they are, and returns how many there were.
    pub fn send(&self, arguments: &[DatumWithOid], receiver: *mut pg_sys::DestReceiver) -> usize {
        self.run(arguments, false, receiver, processed)
    }

    fn run<T>(
        &self,
        arguments: &[DatumWithOid],
        is_read_only: bool,
        receiver: *mut pg_sys::DestReceiver,
        read: impl FnOnce() -> T,
    ) -> T {
        if arguments.len() != self.parameters.len() {
            pgrx::error!("pg_recur: {} parameters for {}", arguments.len(), self.sql);
        }
        // SAFETY: SPI is connected before and finished after; after an error, the transaction's end finishes SPI. The
        // plan is kept and never freed, and there are as many arguments as it has parameters.
        unsafe {
            pg_sys::SPI_connect();
            let plan = self.plan();
            let options = pg_sys::SPIExecuteOptions {
                params: parameters(arguments),
                read_only: is_read_only,
                dest: receiver,
                ..Default::default()
            };
            let status = pg_sys::SPI_execute_plan_extended(plan, &options);
            if status < 0 {
                pgrx::error!("pg_recur: SPI error {status} for {}", self.sql);
            }
            let result = read();
            pg_sys::SPI_finish();
            result
        }
    }

    /// The text without placeholders, except for lists of columns.
    fn text(&self) -> String {
        let fill = |text: String, (name, sql): &(&str, &str)| {
            text.replace(&format!("{{{{{name}}}}}"), sql)
        };
        let number = self.number.get().to_string();
        self.variant
            .iter()
            .fold(self.sql.to_owned(), fill)
            .replace("{{number}}", &number)
    }

    /// # Safety
    /// SPI must be connected.
    unsafe fn plan(&self) -> pg_sys::SPIPlanPtr {
        let known = self.plan.get();
        if !known.is_null() {
            return known;
        }
        let mut types: Vec<pg_sys::Oid> = self
            .parameters
            .iter()
            .map(|&oid| PgOid::BuiltIn(oid).value())
            .collect();
        let sql = columns::expand(&self.text());
        let Ok(sql) = CString::new(sql) else {
            pgrx::error!("pg_recur: a query holds a zero byte");
        };
        // One plan for all values: a custom plan per call would take longer to make than to run.
        let options = pg_sys::CURSOR_OPT_GENERIC_PLAN as i32;
        let count = types.len() as i32;
        // SAFETY: the text ends with a zero byte, and there are as many types as parameters.
        let plan =
            unsafe { pg_sys::SPI_prepare_cursor(sql.as_ptr(), count, types.as_mut_ptr(), options) };
        // SAFETY: the plan has just been made; kept, it lives as long as the process.
        if plan.is_null() || unsafe { pg_sys::SPI_keepplan(plan) } != 0 {
            pgrx::error!("pg_recur: a query can't be prepared: {}", self.sql);
        }
        self.plan.set(plan);
        plan
    }
}

fn processed() -> usize {
    // SAFETY: a variable of this process, set by the statement that ran last.
    (unsafe { pg_sys::SPI_processed }) as usize
}

/// The arguments as the executor takes them.
///
/// # Safety
/// SPI must be connected: the list lives in its memory.
unsafe fn parameters(arguments: &[DatumWithOid]) -> pg_sys::ParamListInfo {
    // SAFETY: the list is made for that many parameters.
    unsafe {
        let list = pg_sys::makeParamList(arguments.len() as i32);
        let slots = (*list).params.as_mut_slice(arguments.len());
        for (slot, argument) in slots.iter_mut().zip(arguments) {
            let datum = argument.datum();
            slot.isnull = datum.is_none();
            slot.value = datum.map_or(pg_sys::Datum::null(), |datum| datum.sans_lifetime());
            slot.pflags = pg_sys::PARAM_FLAG_CONST as u16;
            slot.ptype = argument.oid();
        }
        list
    }
}

/// The types of a row's columns.
///
/// # Safety
/// The descriptor must be valid.
pub unsafe fn column_types(descriptor: pg_sys::TupleDesc) -> Vec<pg_sys::Oid> {
    // SAFETY: the caller promises a valid descriptor, and the columns are numbered from 0.
    unsafe {
        (0..(*descriptor).natts as usize)
            .map(|column| compat::attribute(descriptor, column).atttypid)
            .collect()
    }
}

/// A row of a result, deformed once: to ask the server for each column separately takes longer than the query.
pub struct Row {
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
    types: Vec<pg_sys::Oid>,
}

impl Row {
    /// A row of this type, to be filled.
    ///
    /// # Safety
    /// The descriptor must be valid.
    unsafe fn of(descriptor: pg_sys::TupleDesc) -> Row {
        // SAFETY: the caller promises a valid descriptor.
        let types = unsafe { column_types(descriptor) };
        Row {
            values: vec![pg_sys::Datum::null(); types.len()],
            nulls: vec![true; types.len()],
            types,
        }
    }

    /// # Safety
    /// The tuple must be of this descriptor, and the descriptor the one that the row was made of.
    unsafe fn fill(&mut self, tuple: pg_sys::HeapTuple, descriptor: pg_sys::TupleDesc) {
        // SAFETY: there is room for each column.
        unsafe {
            pg_sys::heap_deform_tuple(
                tuple,
                descriptor,
                self.values.as_mut_ptr(),
                self.nulls.as_mut_ptr(),
            );
        }
    }

    /// A column, counted from 1; raises where it has another type than the one it is read as.
    pub fn get<T: FromDatum + IntoDatum>(&self, ordinal: usize) -> Option<T> {
        let column = ordinal.wrapping_sub(1);
        let Some(&oid) = self.types.get(column) else {
            pgrx::error!("pg_recur: a result has no column {ordinal}");
        };
        if !T::is_compatible_with(oid) {
            pgrx::error!(
                "pg_recur: column {ordinal} of a result is of type {}, and {} was expected",
                oid.to_u32(),
                T::type_oid().to_u32()
            );
        }
        // SAFETY: the type has been checked, and the value lives in SPI's memory while the row is read.
        unsafe { T::from_datum(self.values[column], self.nulls[column]) }
    }

    /// A column that is never NULL.
    pub fn required<T: FromDatum + IntoDatum>(&self, ordinal: usize) -> T {
        self.get(ordinal)
            .unwrap_or_else(|| pgrx::error!("pg_recur: column {ordinal} of a result is NULL"))
    }

    pub fn uuid(&self, ordinal: usize) -> Uuid {
        plain_uuid(self.required(ordinal))
    }

    pub fn optional_uuid(&self, ordinal: usize) -> Option<Uuid> {
        self.get(ordinal).map(plain_uuid)
    }

    /// None for NULL, and for `infinity`, which is no point in time.
    pub fn instant(&self, ordinal: usize) -> Option<DateTime<Utc>> {
        let value: Option<TimestampWithTimeZone> = self.get(ordinal);
        value.and_then(|value| time::from_micros(pg_sys::TimestampTz::from(value)))
    }

    pub fn required_instant(&self, ordinal: usize) -> DateTime<Utc> {
        self.instant(ordinal).unwrap_or_else(|| {
            pgrx::error!("pg_recur: column {ordinal} of a result is no point in time")
        })
    }
}

pub fn plain_uuid(value: PgUuid) -> Uuid {
    Uuid::from_bytes(*value.as_bytes())
}

pub fn pg_uuid(value: Uuid) -> PgUuid {
    PgUuid::from_bytes(value.into_bytes())
}

pub fn pg_uuids(values: impl IntoIterator<Item = Uuid>) -> Vec<PgUuid> {
    values.into_iter().map(pg_uuid).collect()
}
