//! The databases of this server, read from the shared catalog: the launcher is connected to none of them.

use pgrx::pg_sys;
use std::ffi::CStr;
use std::ptr;

pub struct Database {
    pub oid: pg_sys::Oid,
    pub name: String,
}

/// All databases that a worker can connect to. Needs a transaction.
///
/// Templates are left out: a worker in template1 would block every CREATE DATABASE.
pub fn connectable() -> Vec<Database> {
    let mut found = Vec::new();
    // SAFETY: the relation is open and the scan has not ended while a row is read; every row of pg_database begins with
    // its form. After an error, the transaction's end closes both.
    unsafe {
        let relation = pg_sys::table_open(
            pg_sys::DatabaseRelationId,
            pg_sys::AccessShareLock as pg_sys::LOCKMODE,
        );
        let scan = pg_sys::systable_beginscan(
            relation,
            pg_sys::InvalidOid,
            false,
            ptr::null_mut(),
            0,
            ptr::null_mut(),
        );
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            let row = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_database>();
            // -2 marks a database whose DROP was interrupted.
            if row.datallowconn && !row.datistemplate && row.datconnlimit != -2 {
                found.push(Database {
                    oid: row.oid,
                    name: CStr::from_ptr(row.datname.data.as_ptr())
                        .to_string_lossy()
                        .into_owned(),
                });
            }
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(relation, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
    }
    found
}
