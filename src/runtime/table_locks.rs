//! `LOCK TABLE` on relations of the extension is refused to all but superusers and the extension itself.
//!
//! PostgreSQL lets every role that may UPDATE or DELETE lock the whole relation. An author has both rights on the view
//! `recur.recurring_actions`, and every session that reads the view would wait for the author's transaction. The tables
//! behind the view are safe by themselves: its owner, `recur_views`, may only read them.

use super::{engine, installation};
use crate::pg::error::SqlError;
use crate::pg::identity;
use crate::pg::query::queries;
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys;

queries! {
    REACHES_EXTENSION = "install/queries/reaches_extension.sql" (OIDARRAYOID);
}

/// Raises where the statement would lock a relation of the extension, or a view that reads one.
///
/// # Safety
/// `statement` must be a valid parse tree.
pub unsafe fn check(statement: *const pg_sys::LockStmt) {
    // SAFETY: the caller's promise.
    let (mode, relations) = unsafe { ((*statement).mode, (*statement).relations) };
    // ACCESS SHARE is what a plain SELECT takes, and what pg_dump asks for.
    if mode == pg_sys::AccessShareLock as i32
        || installation::find().is_none()
        || identity::is_superuser()
        || engine::is_engine()
    {
        return;
    }
    // SAFETY: the list holds range variables; one that names no relation is the command's own error to raise.
    let oids: Vec<pg_sys::Oid> = unsafe {
        let count = if relations.is_null() {
            0
        } else {
            (*relations).length as usize
        };
        let options = pg_sys::RVROption::RVR_MISSING_OK;
        (0..count)
            .map(|index| {
                (*(*relations).elements.add(index))
                    .ptr_value
                    .cast::<pg_sys::RangeVar>()
            })
            .map(|name| {
                pg_sys::RangeVarGetRelidExtended(name, 0, options, None, std::ptr::null_mut())
            })
            .collect()
    };
    if REACHES_EXTENSION.with(|query| query.execute(&[oids.into()])) > 0 {
        SqlError::new(
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
            "only superusers may lock relations of pg_recur",
        )
        .with_hint("Lock rows of your own instead, or a table of your own.")
        .raise()
    }
}
