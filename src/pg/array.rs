//! Arrays as parameters, built by one call of the server: elsewhere each element takes a guarded call of its own.

use super::time;
use chrono::{DateTime, Utc};
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::{self, Datum};
use std::ffi::{c_char, c_int};
use uuid::Uuid;

/// How the server stores the elements.
struct Element {
    oid: pg_sys::Oid,
    array: pg_sys::Oid,
    length: c_int,
    by_value: bool,
    alignment: u8,
}

const UUID: Element = Element {
    oid: pg_sys::UUIDOID,
    array: pg_sys::UUIDARRAYOID,
    length: 16,
    by_value: false,
    alignment: pg_sys::TYPALIGN_CHAR,
};
const INSTANT: Element = Element {
    oid: pg_sys::TIMESTAMPTZOID,
    array: pg_sys::TIMESTAMPTZARRAYOID,
    length: 8,
    by_value: true,
    alignment: pg_sys::TYPALIGN_DOUBLE,
};
const TID: Element = Element {
    oid: pg_sys::TIDOID,
    array: pg_sys::TIDARRAYOID,
    length: size_of::<pg_sys::ItemPointerData>() as c_int,
    by_value: false,
    alignment: pg_sys::TYPALIGN_SHORT,
};
const INT: Element = Element {
    oid: pg_sys::INT4OID,
    array: pg_sys::INT4ARRAYOID,
    length: 4,
    by_value: true,
    alignment: pg_sys::TYPALIGN_INT,
};

pub fn uuids(values: &[Uuid]) -> DatumWithOid<'static> {
    let datums = values
        .iter()
        .map(|one| Datum::from(one.as_bytes().as_ptr()));
    // SAFETY: each datum points to sixteen bytes.
    unsafe { of(UUID, datums.map(Some)) }
}

pub fn tids<'a>(
    values: impl ExactSizeIterator<Item = &'a pg_sys::ItemPointerData>,
) -> DatumWithOid<'static> {
    let datums = values.map(|one| Some(Datum::from(std::ptr::from_ref(one))));
    // SAFETY: each datum points to a tid.
    unsafe { of(TID, datums) }
}

pub fn ints(values: impl ExactSizeIterator<Item = i32>) -> DatumWithOid<'static> {
    // SAFETY: each datum is an integer.
    unsafe { of(INT, values.map(|one| Some(Datum::from(one)))) }
}

pub fn instants(
    values: impl ExactSizeIterator<Item = Option<DateTime<Utc>>>,
) -> DatumWithOid<'static> {
    let datum = |one| Datum::from(pg_sys::TimestampTz::from(time::timestamptz(one)));
    // SAFETY: each datum is a timestamptz.
    unsafe { of(INSTANT, values.map(|one| one.map(datum))) }
}

/// # Safety
/// Each datum must be of the element's type.
unsafe fn of(
    element: Element,
    values: impl ExactSizeIterator<Item = Option<Datum>>,
) -> DatumWithOid<'static> {
    let mut nulls = Vec::with_capacity(values.len());
    let mut datums = Vec::with_capacity(values.len());
    for value in values {
        nulls.push(value.is_none());
        datums.push(value.unwrap_or(Datum::null()));
    }
    let (mut lengths, mut bounds) = ([datums.len() as c_int], [1]);
    // SAFETY: one dimension of that many elements, which the caller promises to be of this type and the server copies.
    unsafe {
        let array = pg_sys::construct_md_array(
            datums.as_mut_ptr(),
            nulls.as_mut_ptr(),
            1,
            lengths.as_mut_ptr(),
            bounds.as_mut_ptr(),
            element.oid,
            element.length,
            element.by_value,
            element.alignment as c_char,
        );
        DatumWithOid::new(Datum::from(array), element.array)
    }
}
