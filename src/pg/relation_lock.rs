//! Locks on tables, of any strength, which SQL grants only to their owners.

use super::catalog;
use pgrx::pg_sys;
use std::ffi::CStr;

/// Locks a table until the transaction ends.
pub fn lock(schema: &CStr, table: &CStr, mode: u32) {
    let relation = catalog::schema(schema).and_then(|schema| catalog::relation(schema, table));
    let Some(relation) = relation else {
        pgrx::error!("pg_recur: the table {table:?} does not exist");
    };
    // SAFETY: the relation exists; if it is dropped meanwhile, nothing is locked that anybody uses.
    unsafe { pg_sys::LockRelationOid(relation, mode as pg_sys::LOCKMODE) };
}
