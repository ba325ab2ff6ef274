//! Look-ups in the system catalogs, through the server's caches. All of them need a transaction.

use pgrx::pg_sys;
use std::ffi::{CStr, c_char};

fn valid(oid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    (oid != pg_sys::InvalidOid).then_some(oid)
}

pub fn schema(name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: the name ends with a zero byte, and a missing schema is no error.
    valid(unsafe { pg_sys::get_namespace_oid(name.as_ptr(), true) })
}

pub fn extension(name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: the name ends with a zero byte, and a missing extension is no error.
    valid(unsafe { pg_sys::get_extension_oid(name.as_ptr(), true) })
}

pub fn relation(schema: pg_sys::Oid, name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: the name ends with a zero byte; an unknown schema or relation yields an invalid oid.
    valid(unsafe { pg_sys::get_relname_relid(name.as_ptr(), schema) })
}

/// The function of this name that takes no arguments.
pub fn function_without_arguments(schema: pg_sys::Oid, name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: the cache is keyed by name, argument types and schema, and each key has its type; names of fewer than
    // NAMEDATALEN bytes may be passed as plain text.
    valid(unsafe {
        pg_sys::GetSysCacheOid(
            pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as i32,
            pg_sys::Anum_pg_proc_oid as pg_sys::AttrNumber,
            pg_sys::Datum::from(name.as_ptr()),
            pg_sys::Datum::from(pg_sys::buildoidvector(std::ptr::null(), 0)),
            pg_sys::Datum::from(schema),
            pg_sys::Datum::from(0),
        )
    })
}

pub fn role(name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: the name ends with a zero byte, and a missing role is no error.
    valid(unsafe { pg_sys::get_role_oid(name.as_ptr(), true) })
}

pub fn role_name(role: pg_sys::Oid) -> Option<String> {
    // SAFETY: for a missing role the server returns NULL, as asked; otherwise a name that ends with a zero byte.
    unsafe { owned(pg_sys::GetUserNameFromId(role, true)) }
}

pub fn database(name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: the name ends with a zero byte, and a missing database is no error.
    valid(unsafe { pg_sys::get_database_oid(name.as_ptr(), true) })
}

pub fn database_name(database: pg_sys::Oid) -> Option<String> {
    // SAFETY: for a missing database the server returns NULL, otherwise a name that ends with a zero byte.
    unsafe { owned(pg_sys::get_database_name(database)) }
}

/// # Safety
/// `text` must be NULL or end with a zero byte.
unsafe fn owned(text: *const c_char) -> Option<String> {
    // SAFETY: the text is not NULL, so it ends with a zero byte.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text).to_string_lossy().into_owned() })
}
