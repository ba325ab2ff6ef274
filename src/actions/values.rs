//! Values of columns, between SQL and recur-core.

use crate::pg::error::SqlError;
use crate::pg::jsonb::{self, Jsonb};
use crate::pg::query::plain_uuid;
use crate::pg::{interval, time};
use pgrx::datum::{DatumWithOid, TimestampWithTimeZone, Uuid as PgUuid};
use pgrx::pg_sys::{self, BuiltinOid, PgOid};
use pgrx::prelude::*;
use recur_core::action::{Column, Kind, Value};

/// A datum as recur-core takes it. A JSON value lives as long as the datum's memory.
///
/// # Safety
/// The datum must be of this type.
pub unsafe fn value(
    name: &str,
    type_oid: pg_sys::Oid,
    datum: Option<pg_sys::Datum>,
) -> Result<Value<Jsonb>, SqlError> {
    let Some(datum) = datum else {
        return Ok(Value::Null);
    };
    // SAFETY: a look-up in the catalog cache.
    let base_type = unsafe { pg_sys::getBaseType(type_oid) };
    // SAFETY: the datum is read as its base type, which the caller promises to be right.
    unsafe {
        Ok(match PgOid::from(base_type) {
            PgOid::BuiltIn(BuiltinOid::TEXTOID) => Value::Text(read(datum)),
            PgOid::BuiltIn(BuiltinOid::INT4OID) => Value::Int(read::<i32>(datum).into()),
            PgOid::BuiltIn(BuiltinOid::INT8OID) => Value::Int(read(datum)),
            PgOid::BuiltIn(BuiltinOid::BOOLOID) => Value::Bool(read(datum)),
            PgOid::BuiltIn(BuiltinOid::TIMESTAMPTZOID) => {
                Value::Instant(time::instant(name, read::<TimestampWithTimeZone>(datum))?)
            }
            PgOid::BuiltIn(BuiltinOid::INTERVALOID) => {
                Value::Interval(interval::parts(&read(datum)))
            }
            PgOid::BuiltIn(BuiltinOid::JSONBOID) => Value::Json(read(datum)),
            PgOid::BuiltIn(BuiltinOid::UUIDOID) => {
                Value::Text(plain_uuid(read::<PgUuid>(datum)).to_string())
            }
            _ => pgrx::error!(
                "pg_recur: {name} is of type {}, which no column has",
                type_oid.to_u32()
            ),
        })
    }
}

/// # Safety
/// The datum must be of the type.
unsafe fn read<T: FromDatum>(datum: pg_sys::Datum) -> T {
    // SAFETY: the caller promises the type.
    let value = unsafe { T::from_datum(datum, false) };
    value.unwrap_or_else(|| pgrx::error!("pg_recur: a value can't be read"))
}

/// The value of a column, which has been checked, as a parameter of a query.
pub fn parameter(column: Column, value: &Value<Jsonb>) -> DatumWithOid<'static> {
    match value {
        Value::Null => DatumWithOid::null_oid(type_oid(column.spec().kind)),
        Value::Text(text) => text.as_str().into(),
        Value::Int(number) => int4(*number).into(),
        Value::Bool(truth) => (*truth).into(),
        Value::Instant(instant) => time::timestamptz(*instant).into(),
        Value::Interval(span) => interval::from_parts(*span).into(),
        Value::Json(json) => (*json).into(),
    }
}

/// The values of a column, which have been checked, as an array.
pub fn parameters<'a>(
    column: Column,
    values: impl Iterator<Item = &'a Value<Jsonb>>,
) -> DatumWithOid<'static> {
    match parameter_type(column.spec().kind) {
        BuiltinOid::TEXTOID => values.map(Value::as_text).collect::<Vec<_>>().into(),
        BuiltinOid::TIMESTAMPTZOID => {
            let instants = values.map(|value| value.as_instant().map(time::timestamptz));
            instants.collect::<Vec<_>>().into()
        }
        BuiltinOid::INT4OID => {
            let numbers = values.map(|value| value.as_int().map(int4));
            numbers.collect::<Vec<_>>().into()
        }
        BuiltinOid::BOOLOID => values.map(Value::as_bool).collect::<Vec<_>>().into(),
        BuiltinOid::INTERVALOID => {
            let spans = values.map(|value| value.as_interval().map(interval::from_parts));
            spans.collect::<Vec<_>>().into()
        }
        _ => {
            let values: Vec<_> = values.map(|value| value.as_json().copied()).collect();
            jsonb::array_of(&values)
        }
    }
}

/// The type of an array of a column's values.
pub const fn array_type(kind: Kind) -> BuiltinOid {
    match parameter_type(kind) {
        BuiltinOid::TEXTOID => BuiltinOid::TEXTARRAYOID,
        BuiltinOid::TIMESTAMPTZOID => BuiltinOid::TIMESTAMPTZARRAYOID,
        BuiltinOid::INT4OID => BuiltinOid::INT4ARRAYOID,
        BuiltinOid::BOOLOID => BuiltinOid::BOOLARRAYOID,
        BuiltinOid::INTERVALOID => BuiltinOid::INTERVALARRAYOID,
        _ => BuiltinOid::JSONBARRAYOID,
    }
}

/// A number that has been checked to fit.
pub fn int4(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn type_oid(kind: Kind) -> pg_sys::Oid {
    PgOid::BuiltIn(parameter_type(kind)).value()
}

/// The type of the columns of a kind.
pub const fn parameter_type(kind: Kind) -> BuiltinOid {
    match kind {
        Kind::Name
        | Kind::Text
        | Kind::Channel
        | Kind::Schedule
        | Kind::Timezone
        | Kind::Choice(_)
        | Kind::Events => BuiltinOid::TEXTOID,
        Kind::Instant => BuiltinOid::TIMESTAMPTZOID,
        Kind::Count { .. } | Kind::Int => BuiltinOid::INT4OID,
        Kind::Bool => BuiltinOid::BOOLOID,
        Kind::Interval { .. } => BuiltinOid::INTERVALOID,
        Kind::JsonObject | Kind::Labels | Kind::Backoff => BuiltinOid::JSONBOID,
    }
}
