//! The `changes` of `recur.update`: a JSON object whose keys are columns.

use crate::pg::error::{SqlError, abbreviated, given};
use crate::pg::jsonb::{self, Jsonb};
use crate::pg::query::{Row, queries};
use crate::pg::{subtransaction, time};
use crate::runtime::environment::environment;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use pgrx::prelude::*;
use recur_core::action::{Changes, Column, Invalid, Json, Kind, OnExisting, Value, check_object};
use std::ffi::CString;

queries! {
    EACH_CHANGE = "actions/queries/each_change.sql" (JSONBOID);
    EACH_DEFINITION = "actions/queries/each_definition.sql" (JSONBARRAYOID);
}

/// A value of the object.
struct Given {
    key: String,
    json: Jsonb,
    is_null: bool,
    /// None for null, for objects and for arrays.
    text: Option<String>,
}

/// What `recur.update` is asked for.
pub struct Asked {
    pub changes: Changes<Jsonb>,
    /// The name of a new owner, which is no column of the definition.
    pub owner: Option<String>,
}

/// The changes, each value read as its column's type.
pub fn read(changes: Jsonb) -> Result<Changes<Jsonb>, SqlError> {
    let Asked { changes, owner } = read_with_owner(changes)?;
    match owner {
        None => Ok(changes),
        Some(_) => Err(
            Changes::<Jsonb>::column("owner").map_or_else(SqlError::from, |_| {
                SqlError::invalid_argument("change", "owner", "can't be compared")
            }),
        ),
    }
}

/// The same, with an owner.
pub fn read_with_owner(changes: Jsonb) -> Result<Asked, SqlError> {
    check_object("changes", &changes, &environment())?;
    // SAFETY: a variable of this process: the memory context of the call, in which the values have to live.
    let context = unsafe { pg_sys::CurrentMemoryContext };
    let given =
        EACH_CHANGE.with(|query| query.rows(&[changes.into()], |row| Given::read(row, 1, context)));
    let mut pairs = Vec::with_capacity(given.len());
    let mut owner = None;
    for one in given {
        if one.key == "owner" {
            let name = one.text.filter(|_| !one.is_null);
            owner = Some(name.ok_or_else(|| SqlError::from(Invalid::missing("owner")))?);
            continue;
        }
        let column = Changes::<Jsonb>::column(&one.key)?;
        pairs.push((column, typed(column, one)?));
    }
    Ok(Asked {
        changes: Changes::from_arguments(pairs)?,
        owner,
    })
}

/// An action that `recur.create_many` is to create.
pub struct ToCreate {
    pub changes: Changes<Jsonb>,
    pub on_existing: OnExisting,
}

/// Definitions as objects with the arguments of `recur.create`, of which the first has this number. A null counts as
/// left out.
pub fn read_definitions(
    definitions: &[Option<Jsonb>],
    first: usize,
) -> Result<Vec<ToCreate>, SqlError> {
    let environment = environment();
    for (place, definition) in definitions.iter().enumerate() {
        given("definition", *definition)
            .and_then(|object| Ok(check_object("definition", &object, &environment)?))
            .map_err(|error| error.of_element(first + place))?;
    }
    // SAFETY: a variable of this process: the memory context of the call, in which the values have to live.
    let context = unsafe { pg_sys::CurrentMemoryContext };
    let members = EACH_DEFINITION.with(|query| {
        query.rows(&[jsonb::array_of(definitions)], |row| {
            (
                row.required::<i64>(1) as usize - 1,
                Given::read(row, 2, context),
            )
        })
    });
    let mut all: Vec<_> = definitions.iter().map(|_| (Vec::new(), None)).collect();
    for (place, one) in members.into_iter().filter(|(_, one)| !one.is_null) {
        let (pairs, on_existing) = &mut all[place];
        let read = match one.key.as_str() {
            "on_existing" => {
                *on_existing = one.text;
                continue;
            }
            key => Changes::<Jsonb>::column(key)
                .map_err(SqlError::from)
                .and_then(|column| Ok((column, typed(column, one)?))),
        };
        pairs.push(read.map_err(|error| error.of_element(first + place))?);
    }
    let read = |(place, (pairs, on_existing)): (usize, (Vec<_>, Option<String>))| {
        let read = || -> Result<ToCreate, SqlError> {
            Ok(ToCreate {
                changes: Changes::from_arguments(pairs)?,
                on_existing: match on_existing {
                    Some(name) => OnExisting::parse(Some(&name))?,
                    None => OnExisting::default(),
                },
            })
        };
        read().map_err(|error| error.of_element(first + place))
    };
    all.into_iter().enumerate().map(read).collect()
}

impl Given {
    fn read(row: &Row, first: usize, context: pg_sys::MemoryContext) -> Given {
        Given {
            key: row.required(first),
            json: row.required::<Jsonb>(first + 1).copy_to(context),
            is_null: row.required(first + 2),
            text: row.get(first + 3),
        }
    }
}

fn typed(column: Column, given: Given) -> Result<Value<Jsonb>, SqlError> {
    if given.is_null {
        return Ok(Value::Null);
    }
    let kind = column.spec().kind;
    if let Kind::JsonObject | Kind::Labels | Kind::Backoff = kind {
        return Ok(Value::Json(given.json));
    }
    let text = given.text.unwrap_or_else(|| given.json.text());
    let value = match kind {
        Kind::JsonObject | Kind::Labels | Kind::Backoff => None,
        Kind::Count { .. } | Kind::Int => text.trim().parse().ok().map(Value::Int),
        Kind::Bool => parse_bool(&text).map(Value::Bool),
        Kind::Interval { .. } => (environment().parse_interval)(&text).map(Value::Interval),
        Kind::Instant => return parse_instant(column, &text),
        Kind::Name
        | Kind::Text
        | Kind::Channel
        | Kind::Schedule
        | Kind::Timezone
        | Kind::Choice(_)
        | Kind::Events => {
            return Ok(Value::Text(text));
        }
    };
    value.ok_or_else(|| {
        let sql_type = match kind.sql_type() {
            "int" => "integer",
            other => other,
        };
        let problem = format!(
            "invalid input syntax for type {sql_type}: \"{}\"",
            abbreviated(&text)
        );
        SqlError::invalid_argument(column.name(), &text, &problem)
    })
}

/// Read as the server reads a boolean: `on` and `yes` are true as well.
fn parse_bool(text: &str) -> Option<bool> {
    let text = CString::new(text.trim()).ok()?;
    let mut truth = false;
    // SAFETY: the text ends with a zero byte, and the pointer to the result is valid.
    let is_valid = unsafe { pg_sys::parse_bool(text.as_ptr(), &mut truth) };
    is_valid.then_some(truth)
}

/// Read as the server reads a timestamptz, in the session's time zone.
fn parse_instant(column: Column, text: &str) -> Result<Value<Jsonb>, SqlError> {
    let input = CString::new(text).unwrap_or_default();
    // SAFETY: timestamptz_in takes a text that ends with a zero byte, an unused oid and a type modifier. Its error is
    // caught by the subtransaction.
    let read = subtransaction::attempt(|| unsafe {
        let arguments = [
            Some(pg_sys::Datum::from(input.as_ptr())),
            Some(pg_sys::Datum::from(0usize)),
            Some(pg_sys::Datum::from(-1i32)),
        ];
        let datum = pgrx::direct_function_call_as_datum(pg_sys::timestamptz_in, &arguments);
        datum.and_then(|datum| TimestampWithTimeZone::from_datum(datum, false))
    });
    let problem = match read {
        Ok(Some(instant)) => return Ok(Value::Instant(time::instant(column.name(), instant)?)),
        Ok(None) => "must be a point in time".to_owned(),
        // The message repeats the text.
        Err(failure) => failure.message.replace(text, &abbreviated(text)),
    };
    Err(SqlError::invalid_argument(column.name(), text, &problem))
}
