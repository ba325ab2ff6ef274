//! Thin wrappers around the server: whatever is unsafe, version-dependent or wordy about Postgres
//! lives here, so that the rest reads as ordinary Rust.

pub mod compat;
pub mod error;
pub mod latch;
pub mod lock_timeout;
pub mod role;
pub mod subtransaction;
pub mod time;
pub mod transaction;

use pgrx::pg_sys;

/// Is the postmaster loading `shared_preload_libraries` right now? Only then may shared memory be
/// asked for and static workers be registered.
pub fn preloading() -> bool {
    unsafe { pg_sys::process_shared_preload_libraries_in_progress }
}

/// The database this process is connected to.
pub fn my_database() -> pg_sys::Oid {
    unsafe { pg_sys::MyDatabaseId }
}

/// The extension's oid in this database, if it is installed here. Needs a transaction.
pub fn extension_oid() -> Option<pg_sys::Oid> {
    let oid = unsafe { pg_sys::get_extension_oid(c"pg_recur".as_ptr(), true) };
    (oid != pg_sys::InvalidOid).then_some(oid)
}
