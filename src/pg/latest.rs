//! Questions about what is committed now, in a transaction that sees everything else as it was when it began, too.

use super::role;
use pgrx::prelude::*;
use pgrx::{PgOid, pg_sys};
use std::cell::Cell;
use std::ffi::CStr;

/// A query with one parameter that answers with texts. It is prepared once, and kept for the life of the process: to be
/// declared in a `thread_local`.
pub struct LatestQuery {
    sql: &'static CStr,
    parameter: pg_sys::BuiltinOid,
    plan: Cell<pg_sys::SPIPlanPtr>,
}

impl LatestQuery {
    pub const fn new(sql: &'static CStr, parameter: pg_sys::BuiltinOid) -> LatestQuery {
        LatestQuery {
            sql,
            parameter,
            plan: Cell::new(std::ptr::null_mut()),
        }
    }

    /// The text of each row, asked as the owner of the tables: it may be about what belongs to somebody else.
    pub fn texts(&self, parameter: impl IntoDatum) -> Vec<String> {
        let Some(parameter) = parameter.into_datum() else {
            return Vec::new();
        };
        let mut values = [parameter];
        role::as_owner(|| unsafe {
            pg_sys::SPI_connect();
            pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot());
            // Read-only: with the snapshot that was just taken, not with the transaction's.
            let (nulls, read_only) = (std::ptr::null(), true);
            let plan = self.plan();
            let status = pg_sys::SPI_execute_plan(plan, values.as_mut_ptr(), nulls, read_only, 0);
            if status != pg_sys::SPI_OK_SELECT as i32 {
                pgrx::error!("pg_recur: a query has failed: {:?}", self.sql);
            }
            let table = &*pg_sys::SPI_tuptable;
            let tuples = std::slice::from_raw_parts(table.vals, table.numvals as usize);
            let texts = tuples.iter().filter_map(|tuple| {
                let mut is_null = false;
                let value = pg_sys::SPI_getbinval(*tuple, table.tupdesc, 1, &mut is_null);
                String::from_datum(value, is_null)
            });
            let texts = texts.collect();
            pg_sys::PopActiveSnapshot();
            pg_sys::SPI_finish();
            texts
        })
    }

    /// Inside SPI only.
    unsafe fn plan(&self) -> pg_sys::SPIPlanPtr {
        if self.plan.get().is_null() {
            let mut types = [PgOid::BuiltIn(self.parameter).value()];
            unsafe {
                let plan = pg_sys::SPI_prepare(self.sql.as_ptr(), 1, types.as_mut_ptr());
                if plan.is_null() || pg_sys::SPI_keepplan(plan) != 0 {
                    pgrx::error!("pg_recur: a query can't be prepared: {:?}", self.sql);
                }
                self.plan.set(plan);
            }
        }
        self.plan.get()
    }
}
