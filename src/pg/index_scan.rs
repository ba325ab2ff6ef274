//! The first entry of an index, without a query. In every database a worker wakes up every few seconds, for years,
//! mostly to see that nothing is due: this look should cost as little as possible.

use super::{compat, time};
use chrono::{DateTime, Utc};
use pgrx::pg_sys;
use std::ptr;

const LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;

/// An index and its table.
#[derive(Clone, Copy)]
pub struct Index {
    pub table: pg_sys::Oid,
    pub index: pg_sys::Oid,
}

/// Where a scan begins.
#[derive(Clone, Copy)]
pub enum LowerBound {
    At(DateTime<Utc>),
    After(DateTime<Utc>),
}

/// The first instant of a b-tree index on a timestamptz that belongs to a row which is visible now. `infinity` is none.
pub fn first(index: Index, from: LowerBound) -> Option<DateTime<Utc>> {
    let (strategy, procedure, bound) = match from {
        LowerBound::At(at) => (
            pg_sys::BTGreaterEqualStrategyNumber,
            pg_sys::F_TIMESTAMPTZ_GE,
            at,
        ),
        LowerBound::After(after) => (
            pg_sys::BTGreaterStrategyNumber,
            pg_sys::F_TIMESTAMPTZ_GT,
            after,
        ),
    };
    // SAFETY: both relations are open and `instant_column` has checked them; after an error, the transaction's end
    // closes relations, scan and snapshot.
    unsafe {
        // Sees the transaction's own writes, too.
        pg_sys::CommandCounterIncrement();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let table = pg_sys::table_open(index.table, LOCK);
        let index = pg_sys::index_open(index.index, LOCK);
        let column = instant_column(table, index);
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
        let forward = pg_sys::ScanDirection::ForwardScanDirection;
        let found = pg_sys::index_getnext_slot(scan, forward, slot).then(|| {
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

/// The table's column that the index begins with. Raises unless this is a usable b-tree on a timestamptz of a heap
/// table.
///
/// # Safety
/// Both relations must be open.
unsafe fn instant_column(table: pg_sys::Relation, index: pg_sys::Relation) -> i16 {
    // SAFETY: the relation cache fills in form, key and operator classes of an open index; the column is looked up only
    // if the table has it.
    unsafe {
        let (of_table, of_index, form) =
            (&*(*table).rd_rel, &*(*index).rd_rel, &*(*index).rd_index);
        let descriptor = (*table).rd_att;
        let column = form.indkey.values.as_slice(1)[0];
        let is_usable = of_table.relkind == pg_sys::RELKIND_RELATION as i8
            && of_table.relam == pg_sys::HEAP_TABLE_AM_OID
            && of_index.relkind == pg_sys::RELKIND_INDEX as i8
            && of_index.relam == pg_sys::BTREE_AM_OID
            && form.indrelid == (*table).rd_id
            && form.indisvalid
            && form.indisready
            && *(*index).rd_opcintype == pg_sys::TIMESTAMPTZOID
            && *(*index).rd_opfamily == compat::DATETIME_BTREE_FAMILY
            && *(*index).rd_indoption & pg_sys::INDOPTION_DESC as i16 == 0
            && (1..=(*descriptor).natts).contains(&i32::from(column))
            && compat::attribute(descriptor, column as usize - 1).atttypid
                == pg_sys::TIMESTAMPTZOID;
        if !is_usable {
            pgrx::error!("pg_recur: an index of the extension is not the one that it created");
        }
        column
    }
}
