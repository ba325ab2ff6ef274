//! Functions that return sets. Rows go into a tuplestore; those of a query are not decoded on the way.

use pgrx::datum::DatumWithOid;
use pgrx::pg_sys;
use std::ffi::{CStr, c_char};

unsafe extern "C-unwind" {
    /// Only fills in the receiver's fields; pgrx does not bind it.
    fn SetTuplestoreDestReceiverParams(
        receiver: *mut pg_sys::DestReceiver,
        store: *mut pg_sys::Tuplestorestate,
        context: pg_sys::MemoryContext,
        detoast: bool,
        descriptor: pg_sys::TupleDesc,
        mismatch: *const c_char,
    );
}

const MISMATCH: &CStr = c"pg_recur: a query returns other columns than its function";

/// The set that the current call returns.
pub struct ResultSet {
    info: *mut pg_sys::ReturnSetInfo,
    context: pg_sys::MemoryContext,
    types: Vec<pg_sys::Oid>,
}

impl ResultSet {
    /// Begins the result of a set-returning function.
    pub fn begin(call: pg_sys::FunctionCallInfo) -> ResultSet {
        // SAFETY: pgrx passes the current call; the server raises an error where no set is expected, and otherwise
        // fills in the tuplestore and its descriptor.
        unsafe {
            pg_sys::InitMaterializedSRF(call, 0);
            let info = (*call).resultinfo.cast::<pg_sys::ReturnSetInfo>();
            let context = (*(*info).econtext).ecxt_per_query_memory;
            let types = super::query::column_types((*info).setDesc);
            ResultSet {
                info,
                context,
                types,
            }
        }
    }

    /// A receiver that puts the rows of a query into the set. The executor checks that their types are the function's.
    pub fn receiver(&self) -> *mut pg_sys::DestReceiver {
        // SAFETY: the tuplestore and the descriptor live as long as the query that called the function.
        unsafe {
            let receiver = pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestTuplestore);
            let (store, descriptor) = ((*self.info).setResult, (*self.info).setDesc);
            SetTuplestoreDestReceiverParams(
                receiver,
                store,
                self.context,
                false,
                descriptor,
                MISMATCH.as_ptr(),
            );
            receiver
        }
    }

    /// Adds a row; raises where a value is not of its column's type.
    pub fn put(&self, row: &[DatumWithOid]) {
        // SAFETY: `begin` has made the set with this descriptor.
        let descriptor = unsafe { (*self.info).setDesc };
        if !self
            .types
            .iter()
            .copied()
            .eq(row.iter().map(DatumWithOid::oid))
        {
            pgrx::error!("pg_recur: a function returns other columns than declared");
        }
        let mut nulls: Vec<bool> = row.iter().map(|value| value.datum().is_none()).collect();
        let mut values: Vec<pg_sys::Datum> = row
            .iter()
            .map(|value| {
                let datum = value.datum();
                datum.map_or(pg_sys::Datum::null(), |datum| datum.sans_lifetime())
            })
            .collect();
        // SAFETY: there are as many values as columns, each of its column's type.
        unsafe {
            let store = (*self.info).setResult;
            pg_sys::tuplestore_putvalues(
                store,
                descriptor,
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
        }
    }
}
