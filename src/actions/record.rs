//! Rows with the names of their columns: rows of triggers, and rows of tables that a query returns whole.

use super::values;
use crate::pg::compat;
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::jsonb::Jsonb;
use chrono::{DateTime, Utc};
use pgrx::datum::{FromDatum, IntoDatum};
use pgrx::pg_sys;
use recur_core::action::Value;
use std::ffi::CStr;

/// A deformed row. Its values live as long as the tuple.
pub struct Record {
    fields: Vec<Field>,
}

pub struct Field {
    name: String,
    pub type_oid: pg_sys::Oid,
    pub datum: Option<pg_sys::Datum>,
}

impl Record {
    /// # Safety
    /// The tuple must be of this descriptor, and outlive the record.
    pub unsafe fn of_tuple(tuple: pg_sys::HeapTuple, descriptor: pg_sys::TupleDesc) -> Record {
        // SAFETY: the descriptor is valid, and there is room for each of its columns.
        unsafe {
            let columns = (*descriptor).natts as usize;
            let mut values = vec![pg_sys::Datum::null(); columns];
            let mut nulls = vec![true; columns];
            pg_sys::heap_deform_tuple(tuple, descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
            let fields = (0..columns).map(|column| {
                let attribute = compat::attribute(descriptor, column);
                (!attribute.attisdropped).then(|| Field {
                    name: column_name(attribute).to_owned(),
                    type_oid: attribute.atttypid,
                    datum: (!nulls[column]).then_some(values[column]),
                })
            });
            Record {
                fields: fields.flatten().collect(),
            }
        }
    }

    pub fn of_composite(composite: Composite) -> Record {
        let header = composite.0;
        // SAFETY: a composite value has its type and its length in its header; the row type is released again.
        unsafe {
            let of = (*header).t_choice.t_datum;
            let descriptor = pg_sys::lookup_rowtype_tupdesc(of.datum_typeid, of.datum_typmod);
            let mut tuple = pg_sys::HeapTupleData {
                t_len: composite.size() as u32,
                t_data: header,
                ..Default::default()
            };
            let record = Record::of_tuple(&mut tuple, descriptor);
            if (*descriptor).tdrefcount >= 0 {
                pg_sys::DecrTupleDescRefCount(descriptor);
            }
            record
        }
    }

    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// All columns with their values; an instant at infinity is an error.
    pub fn values(&self) -> Result<Vec<(&str, Value<Jsonb>)>, SqlError> {
        let fields = self.fields.iter();
        fields
            .map(|field| Ok((field.name.as_str(), field.value()?)))
            .collect()
    }

    /// The value of a column that a table of the extension has.
    pub fn value(&self, name: &str) -> Value<Jsonb> {
        match self.field(name) {
            Some(field) => field.value().or_raise(),
            None => pgrx::error!("pg_recur: a row has no column {name}"),
        }
    }

    pub fn text(&self, name: &str) -> Option<String> {
        self.value(name).as_text().map(str::to_owned)
    }

    pub fn instant(&self, name: &str) -> Option<DateTime<Utc>> {
        self.value(name).as_instant()
    }

    pub fn int(&self, name: &str) -> i64 {
        self.value(name).as_int().unwrap_or_default()
    }

    pub fn is_true(&self, name: &str) -> bool {
        self.value(name).as_bool() == Some(true)
    }
}

impl Field {
    fn value(&self) -> Result<Value<Jsonb>, SqlError> {
        // SAFETY: the type of the datum is the descriptor's.
        unsafe { values::value(&self.name, self.type_oid, self.datum) }
    }
}

/// The name of a column.
pub fn column_name(attribute: &pg_sys::FormData_pg_attribute) -> &str {
    // SAFETY: names of the catalog end with a zero byte, and the database is in UTF-8.
    let name = unsafe { CStr::from_ptr(attribute.attname.data.as_ptr()) };
    name.to_str().unwrap_or_default()
}

/// A whole row as a value of a query.
#[derive(Clone, Copy)]
pub struct Composite(pg_sys::HeapTupleHeader);

impl Composite {
    fn size(self) -> usize {
        // SAFETY: every value of variable length begins with its length.
        unsafe { pgrx::varsize_any(self.0.cast()) }
    }

    /// A copy in a memory context that outlives the query.
    pub fn copy_to(self, context: pg_sys::MemoryContext) -> Composite {
        // SAFETY: the copy has room for the whole value.
        unsafe {
            let copy = pg_sys::MemoryContextAlloc(context, self.size());
            std::ptr::copy_nonoverlapping(self.0.cast::<u8>(), copy.cast(), self.size());
            Composite(copy.cast())
        }
    }
}

impl FromDatum for Composite {
    // SAFETY: the caller promises a datum of a row type.
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _type: pg_sys::Oid,
    ) -> Option<Composite> {
        if is_null {
            return None;
        }
        // SAFETY: the caller promises a row.
        unsafe {
            Some(Composite(
                pg_sys::pg_detoast_datum(datum.cast_mut_ptr()).cast(),
            ))
        }
    }
}

impl IntoDatum for Composite {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        Some(pg_sys::Datum::from(self.0))
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::RECORDOID
    }

    fn is_compatible_with(other: pg_sys::Oid) -> bool {
        // SAFETY: a look-up in the catalog caches.
        unsafe { pg_sys::type_is_rowtype(other) }
    }
}
