//! JSON values that are passed on as they are. Payloads are never decoded: no number loses a digit, and no memory is
//! spent on trees.

use super::error::SqlError;
use super::jsonb_digits;
use pgrx::callconv::{Arg, ArgAbi};
use pgrx::datum::{DatumWithOid, FromDatum, IntoDatum};
use pgrx::nullable::Nullable;
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::prelude::PgSqlErrorCode;
use recur_core::action::Json;
use std::ffi::CStr;

/// A value is not written as text if its numbers have more digits than these: a number that people write takes at
/// least 12 bytes.
const MOST_DIGITS_PER_BYTE: usize = 8;
const MOST_DIGITS: usize = 4096;

/// A value of type jsonb, detoasted. The value lives as long as the memory context that it was read in.
#[derive(Clone, Copy)]
pub struct Jsonb(*mut pg_sys::Jsonb);

impl Json for Jsonb {
    /// Reads JSON from text; raises an error if the text is no JSON.
    fn from_text(text: &str) -> Jsonb {
        let text = std::ffi::CString::new(text).unwrap_or_default();
        // SAFETY: jsonb_in takes a text that ends with a zero byte, and returns a jsonb that is not toasted.
        unsafe {
            let datum = pgrx::direct_function_call_as_datum(
                pg_sys::jsonb_in,
                &[Some(pg_sys::Datum::from(text.as_ptr()))],
            );
            Jsonb(datum.unwrap_or(pg_sys::Datum::null()).cast_mut_ptr())
        }
    }

    fn is_object(&self) -> bool {
        // SAFETY: the value is detoasted, and its root begins with a header.
        unsafe { (*self.0).root.header & pg_sys::JB_FOBJECT != 0 }
    }

    /// The bytes that the value takes in memory.
    fn size(&self) -> usize {
        // SAFETY: every value of variable length begins with its length.
        unsafe { pgrx::varsize_any(self.0.cast()) }
    }

    /// The value as text: numbers digit by digit as they were written. Raises an error for a value whose numbers would
    /// take far more memory as text.
    fn text(&self) -> String {
        let digits = jsonb_digits::characters(self.container()).unwrap_or(usize::MAX);
        if digits > MOST_DIGITS_PER_BYTE * self.size() + MOST_DIGITS {
            SqlError::new(
                PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                "the numbers of a JSON value have too many digits",
            )
            .with_hint("Give numbers of more than a hundred digits as strings.")
            .raise();
        }
        // SAFETY: the root container is part of the value, the result ends with a zero byte, and it is freed once.
        unsafe {
            let root = &raw mut (*self.0).root;
            let written = pg_sys::JsonbToCString(std::ptr::null_mut(), root, self.size() as i32);
            let text = CStr::from_ptr(written).to_string_lossy().into_owned();
            pg_sys::pfree(written.cast());
            text
        }
    }
}

impl Jsonb {
    /// A value whose root is this; the root must be one that the server could have written.
    pub(super) fn from_container(root: &[u8]) -> Jsonb {
        let size = size_of::<u32>() + root.len();
        // SAFETY: there is room for the length and the root, and the length is set before the value is used.
        unsafe {
            let value = pg_sys::palloc(size).cast::<u8>();
            pgrx::set_varsize_4b(value.cast(), size as i32);
            std::ptr::copy_nonoverlapping(root.as_ptr(), value.add(size_of::<u32>()), root.len());
            Jsonb(value.cast())
        }
    }

    /// The root, without the length in front.
    pub(super) fn container(&self) -> &[u8] {
        &self.bytes()[size_of::<u32>()..]
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the value is detoasted, and takes that many bytes.
        unsafe { std::slice::from_raw_parts(self.0.cast(), self.size()) }
    }

    /// A copy in another memory context, for a value that was read inside a query.
    pub fn copy_to(self, context: pg_sys::MemoryContext) -> Jsonb {
        // SAFETY: the copy has room for the whole value.
        unsafe {
            let copy = pg_sys::MemoryContextAlloc(context, self.size());
            std::ptr::copy_nonoverlapping(self.0.cast::<u8>(), copy.cast(), self.size());
            Jsonb(copy.cast())
        }
    }
}

impl PartialEq for Jsonb {
    fn eq(&self, other: &Jsonb) -> bool {
        // The same text is always stored in the same way.
        self.bytes() == other.bytes()
    }
}

impl FromDatum for Jsonb {
    // SAFETY: the trait demands that the datum is of this type.
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _type: pg_sys::Oid,
    ) -> Option<Jsonb> {
        if is_null {
            return None;
        }
        // SAFETY: the caller promises a jsonb.
        unsafe { Some(Jsonb(pg_sys::pg_detoast_datum(datum.cast_mut_ptr()).cast())) }
    }
}

impl IntoDatum for Jsonb {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        Some(pg_sys::Datum::from(self.0))
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::JSONBOID
    }
}

/// An array of jsonb that is passed on as it is.
#[derive(Clone, Copy)]
pub struct JsonbArray(*mut pg_sys::ArrayType);

impl JsonbArray {
    pub fn len(&self) -> usize {
        // SAFETY: the array is detoasted, and its dimensions follow its header.
        unsafe {
            let dimensions = self
                .0
                .cast::<u8>()
                .add(std::mem::size_of::<pg_sys::ArrayType>());
            pg_sys::ArrayGetNItems((*self.0).ndim, dimensions.cast()) as usize
        }
    }

    /// The elements; None for a NULL.
    pub fn values(&self) -> Vec<Option<Jsonb>> {
        let elements = self.elements();
        // SAFETY: the elements are of jsonb.
        let value = |datum: pg_sys::Datum| unsafe { Jsonb::from_datum(datum, false) };
        elements
            .into_iter()
            .map(|datum| datum.and_then(value))
            .collect()
    }

    /// The bytes of the largest element.
    pub fn largest_size(&self) -> usize {
        // SAFETY: each value begins with its length.
        let size = |datum: pg_sys::Datum| unsafe { pgrx::varsize_any(datum.cast_mut_ptr()) };
        let elements = self.elements().into_iter().flatten();
        elements.map(size).max().unwrap_or_default()
    }

    fn elements(&self) -> Vec<Option<pg_sys::Datum>> {
        let (mut values, mut nulls) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut count = 0;
        // SAFETY: the array is one of jsonb, which is of variable length and aligned to integers. The server allocates
        // as many values and flags as it counts.
        unsafe {
            pg_sys::deconstruct_array(
                self.0,
                pg_sys::JSONBOID,
                -1,
                false,
                pg_sys::TYPALIGN_INT as std::ffi::c_char,
                &mut values,
                &mut nulls,
                &mut count,
            );
            (0..count as usize)
                .map(|index| (!*nulls.add(index)).then(|| *values.add(index)))
                .collect()
        }
    }
}

impl FromDatum for JsonbArray {
    // SAFETY: the trait demands that the datum is of this type.
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _type: pg_sys::Oid,
    ) -> Option<JsonbArray> {
        if is_null {
            return None;
        }
        // SAFETY: the caller promises an array.
        unsafe {
            Some(JsonbArray(
                pg_sys::pg_detoast_datum(datum.cast_mut_ptr()).cast(),
            ))
        }
    }
}

impl IntoDatum for JsonbArray {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        Some(pg_sys::Datum::from(self.0))
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::JSONBARRAYOID
    }
}

/// An array of one value, or of one NULL.
pub fn array_of_one(value: Option<Jsonb>) -> DatumWithOid<'static> {
    array_of(&[value])
}

/// An array of values.
pub fn array_of(values: &[Option<Jsonb>]) -> DatumWithOid<'static> {
    let datum = |value: &Option<Jsonb>| {
        value.map_or(pg_sys::Datum::null(), |value| pg_sys::Datum::from(value.0))
    };
    let mut nulls: Vec<bool> = values.iter().map(Option::is_none).collect();
    let mut values: Vec<pg_sys::Datum> = values.iter().map(datum).collect();
    let (mut lengths, mut bounds) = ([values.len() as i32], [1]);
    // SAFETY: one dimension of that many elements; jsonb is of variable length and aligned to integers.
    unsafe {
        let array = pg_sys::construct_md_array(
            values.as_mut_ptr(),
            nulls.as_mut_ptr(),
            1,
            lengths.as_mut_ptr(),
            bounds.as_mut_ptr(),
            pg_sys::JSONBOID,
            -1,
            false,
            pg_sys::TYPALIGN_INT as std::ffi::c_char,
        );
        DatumWithOid::new(JsonbArray(array), pg_sys::JSONBARRAYOID)
    }
}

macro_rules! argument {
    ($type:ident, $sql:literal) => {
        // SAFETY: the server passes a datum of the type that the function is declared with.
        unsafe impl<'call> ArgAbi<'call> for $type {
            unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'call>) -> $type {
                // SAFETY: the server passes a datum of the declared type.
                let value = unsafe { arg.unbox_arg_using_from_datum() };
                value.unwrap_or_else(|| pgrx::error!("pg_recur: an argument is NULL"))
            }

            unsafe fn unbox_nullable_arg(arg: Arg<'_, 'call>) -> Nullable<$type> {
                // SAFETY: the server passes a datum of the declared type.
                unsafe { arg.unbox_arg_using_from_datum().into() }
            }
        }

        // SAFETY: the type is that of the SQL declaration, which is written by hand.
        unsafe impl SqlTranslatable for $type {
            const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!($type);
            const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
            const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> =
                Ok(SqlMappingRef::literal($sql));
            const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
                Ok(ReturnsRef::One(SqlMappingRef::literal($sql)));
        }
    };
}

argument!(Jsonb, "jsonb");
argument!(JsonbArray, "jsonb[]");
