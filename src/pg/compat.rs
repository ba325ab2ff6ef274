//! Everything that differs between the supported PostgreSQL versions.

use pgrx::pg_sys;
use std::ffi::c_int;

/// The b-tree operator family of dates and times: its oid has been fixed since PostgreSQL introduced families.
pub const DATETIME_BTREE_FAMILY: pg_sys::Oid = pg_sys::Oid::from_u32(434);

/// The setting that ends a process whose transaction takes longer; from 17 on.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub const TRANSACTION_TIMEOUT: Option<&std::ffi::CStr> = None;
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
pub const TRANSACTION_TIMEOUT: Option<&std::ffi::CStr> = Some(c"transaction_timeout");

/// The server's record of a setting; NULL where there is none.
pub fn setting(name: &std::ffi::CStr) -> *const pg_sys::config_generic {
    #[cfg(feature = "pg15")]
    // SAFETY: the array has that many records, each of which has a name that ends with a zero byte.
    return unsafe {
        let count = pg_sys::GetNumConfigOptions() as usize;
        let records = std::slice::from_raw_parts(pg_sys::get_guc_variables(), count);
        let named = |record: &&*mut pg_sys::config_generic| {
            std::ffi::CStr::from_ptr((***record).name) == name
        };
        records.iter().find(named).copied()
    }
    .map_or(std::ptr::null(), <*mut _>::cast_const);
    #[cfg(not(feature = "pg15"))]
    // SAFETY: the name ends with a zero byte; a missing setting is no error.
    return unsafe { pg_sys::find_option(name.as_ptr(), false, true, 0) };
}

/// While the value exists, unqualified names are those of `pg_catalog`.
pub struct Names {
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    _pinned: super::session::Pinned,
}

impl Names {
    /// Up to 16 to set the search_path costs several look-ups in catalogs, and to push another one costs nothing. From
    /// 17 on only the first is left, and cheap.
    pub fn of_server() -> Names {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        // SAFETY: the server copies the path, and drops it when the value does or when the transaction fails.
        unsafe {
            let mut path = pg_sys::OverrideSearchPath {
                schemas: std::ptr::null_mut(),
                addCatalog: true,
                addTemp: false,
                generation: 0,
            };
            pg_sys::PushOverrideSearchPath(&mut path);
        }
        Names {
            #[cfg(not(any(feature = "pg15", feature = "pg16")))]
            _pinned: super::session::Pinned::names(),
        }
    }
}

#[cfg(any(feature = "pg15", feature = "pg16"))]
impl Drop for Names {
    fn drop(&mut self) {
        // After an error, the end of the transaction drops the path.
        if !std::thread::panicking() {
            // SAFETY: the path is the one that was pushed last: those inside have been dropped.
            unsafe { pg_sys::PopOverrideSearchPath() };
        }
    }
}

type Handler = unsafe extern "C-unwind" fn(c_int);

/// Installs a signal handler.
///
/// # Safety
/// `handler` must be async-signal-safe.
pub unsafe fn set_signal_handler(signal: c_int, handler: Handler) {
    #[cfg(not(feature = "pg18"))]
    // SAFETY: the caller promises that the handler may run at any time.
    unsafe {
        pg_sys::pqsignal(signal, Some(handler));
    }
    #[cfg(feature = "pg18")]
    // SAFETY: the caller promises that the handler may run at any time.
    unsafe {
        pg_sys::pqsignal_be(signal, Some(handler));
    }
}

/// Does the current role own this database, or is it a superuser? Needs a transaction.
pub fn owns_database(database: pg_sys::Oid) -> bool {
    // SAFETY: look-ups in the catalog cache; the server raises an error where the database does not exist.
    unsafe {
        let user = pg_sys::GetUserId();
        #[cfg(feature = "pg15")]
        return pg_sys::pg_database_ownercheck(database, user);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(pg_sys::DatabaseRelationId, database, user);
    }
}

/// May `member` act as `role`? It may where SET ROLE would let it: from 16 on a membership can be granted without that.
pub fn can_set_role(member: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: look-ups in the catalog caches.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::is_member_of_role(member, role);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::member_can_set_role(member, role);
    }
}

/// Does the server refuse a background worker whose role has no LOGIN?
pub const NEEDS_LOGIN: bool = cfg!(any(feature = "pg15", feature = "pg16"));

/// Connects a background worker to a database as a role, which needs no LOGIN where the server allows that.
///
/// # Safety
/// Only once in a process, at its start.
pub unsafe fn connect_as(database: pg_sys::Oid, role: pg_sys::Oid) {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    let flags = 0;
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    let flags = pg_sys::BGWORKER_BYPASS_ROLELOGINCHECK;
    // SAFETY: the caller promises that the process is not connected yet.
    unsafe { pg_sys::BackgroundWorkerInitializeConnectionByOid(database, role, flags) };
}

/// Has the role LOGIN?
pub fn can_login(role: pg_sys::Oid) -> bool {
    let cache = pg_sys::SysCacheIdentifier::AUTHOID as i32;
    // SAFETY: the row of a role begins with its form, and is released after it was read.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(role));
        if tuple.is_null() {
            return false;
        }
        let can = (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_authid>()).rolcanlogin;
        pg_sys::ReleaseSysCache(tuple);
        can
    }
}

/// May the role connect to this database?
pub fn can_connect(role: pg_sys::Oid) -> bool {
    let mode = pg_sys::ACL_CONNECT as pg_sys::AclMode;
    // SAFETY: look-ups in the catalog caches.
    unsafe {
        let database = pg_sys::MyDatabaseId;
        #[cfg(feature = "pg15")]
        let result = pg_sys::pg_database_aclcheck(database, role, mode);
        #[cfg(not(feature = "pg15"))]
        let result = pg_sys::object_aclcheck(pg_sys::DatabaseRelationId, database, role, mode);
        result == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// May the role execute this function?
pub fn can_execute(role: pg_sys::Oid, function: pg_sys::Oid) -> bool {
    let mode = pg_sys::ACL_EXECUTE as pg_sys::AclMode;
    // SAFETY: look-ups in the catalog caches.
    unsafe {
        #[cfg(feature = "pg15")]
        let result = pg_sys::pg_proc_aclcheck(function, role, mode);
        #[cfg(not(feature = "pg15"))]
        let result = pg_sys::object_aclcheck(pg_sys::ProcedureRelationId, function, role, mode);
        result == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// Begins a scan of an index that sees what the snapshot sees.
///
/// # Safety
/// Both relations must be open and the snapshot active, until the scan is ended.
pub unsafe fn index_beginscan(
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
    keys: c_int,
) -> pg_sys::IndexScanDesc {
    #[cfg(not(feature = "pg18"))]
    // SAFETY: the caller promises open relations and an active snapshot.
    unsafe {
        pg_sys::index_beginscan(table, index, snapshot, keys, 0)
    }
    #[cfg(feature = "pg18")]
    // SAFETY: the caller promises open relations and an active snapshot; instrumentation is optional.
    unsafe {
        pg_sys::index_beginscan(table, index, snapshot, std::ptr::null_mut(), keys, 0)
    }
}

/// The server's signal handlers as they are. pgrx's bindings wrap every function in an error guard, which a signal
/// handler must not run.
pub mod server_signal {
    use std::ffi::c_int;

    unsafe extern "C-unwind" {
        pub fn die(signal: c_int);
        pub fn SignalHandlerForConfigReload(signal: c_int);
    }
}

/// A column of a row type, counted from 0.
///
/// # Safety
/// `descriptor` must be valid, and `column` less than its number of columns.
pub unsafe fn attribute<'a>(
    descriptor: pg_sys::TupleDesc,
    column: usize,
) -> &'a pg_sys::FormData_pg_attribute {
    // SAFETY: the caller promises a valid descriptor with that many columns.
    unsafe { &*attribute_of(descriptor, column) }
}

/// The same, to be changed.
///
/// # Safety
/// `descriptor` must be valid and used by no other code, and `column` less than its number of columns.
pub unsafe fn attribute_mut<'a>(
    descriptor: pg_sys::TupleDesc,
    column: usize,
) -> &'a mut pg_sys::FormData_pg_attribute {
    // SAFETY: the caller promises that no other code reads the column meanwhile.
    unsafe { &mut *attribute_of(descriptor, column) }
}

/// # Safety
/// `descriptor` must be valid, and `column` less than its number of columns.
unsafe fn attribute_of(
    descriptor: pg_sys::TupleDesc,
    column: usize,
) -> *mut pg_sys::FormData_pg_attribute {
    #[cfg(not(feature = "pg18"))]
    // SAFETY: the caller promises a valid descriptor with that many columns.
    unsafe {
        (&raw mut (*descriptor).attrs)
            .cast::<pg_sys::FormData_pg_attribute>()
            .add(column)
    }
    #[cfg(feature = "pg18")]
    // SAFETY: the same promise; the attributes are stored behind the compact ones.
    unsafe {
        (&raw mut (*descriptor).compact_attrs)
            .cast::<pg_sys::CompactAttribute>()
            .add((*descriptor).natts as usize)
            .cast::<pg_sys::FormData_pg_attribute>()
            .add(column)
    }
}
