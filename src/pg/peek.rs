//! The first instant in an index, without a query: a worker that wakes up to see that nothing is due, every few seconds, in every
//! database, for years, should do no more than that.

use super::compat;
use super::installation::Index;
use super::time;
use chrono::{DateTime, Utc};
use pgrx::pg_sys;
use std::ptr;

const LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;

/// From where on to look.
#[derive(Clone, Copy)]
pub enum From {
    At(DateTime<Utc>),
    After(DateTime<Utc>),
}

/// The first instant of an index on a timestamptz that belongs to a row which is visible now. `infinity` is none.
pub fn first(index: Index, from: From) -> Option<DateTime<Utc>> {
    let (strategy, procedure, bound) = match from {
        From::At(at) => (
            pg_sys::BTGreaterEqualStrategyNumber,
            pg_sys::F_TIMESTAMPTZ_GE,
            at,
        ),
        From::After(after) => (
            pg_sys::BTGreaterStrategyNumber,
            pg_sys::F_TIMESTAMPTZ_GT,
            after,
        ),
    };
    // What is opened here is closed by the end of the transaction if something in between raises an error.
    unsafe {
        // What this transaction has written itself counts.
        pg_sys::CommandCounterIncrement();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let table = pg_sys::table_open(index.table, LOCK);
        let index = pg_sys::index_open(index.index, LOCK);
        let column = (*(*index).rd_index).indkey.values.as_slice(1)[0];
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyInit(
            &mut key,
            1,
            strategy as pg_sys::StrategyNumber,
            procedure.into(),
            pg_sys::Datum::from(time::to_micros(bound)),
        );
        let slot = pg_sys::table_slot_create(table, ptr::null_mut());
        let scan = compat::index_beginscan(table, index, pg_sys::GetActiveSnapshot(), 1);
        pg_sys::index_rescan(scan, &mut key, 1, ptr::null_mut(), 0);
        let found =
            pg_sys::index_getnext_slot(scan, pg_sys::ScanDirection::ForwardScanDirection, slot)
                .then(|| {
                    let mut is_null = true;
                    let value = pg_sys::slot_getattr(slot, column.into(), &mut is_null);
                    value.value() as pg_sys::TimestampTz
                });
        pg_sys::index_endscan(scan);
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        pg_sys::index_close(index, LOCK);
        pg_sys::table_close(table, LOCK);
        pg_sys::PopActiveSnapshot();
        found.and_then(time::from_micros)
    }
}
