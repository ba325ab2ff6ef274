//! Thin wrappers around the server: whatever is unsafe, version-dependent or wordy about Postgres
//! lives here, so that the rest reads as ordinary Rust.

pub mod advisory;
pub mod columns;
pub mod compat;
pub mod cpu;
pub mod error;
pub mod index_scan;
pub mod interval;
pub mod jsonb;
pub mod latch;
pub mod lock_timeout;
pub mod planner;
pub mod prepared;
pub mod query;
pub mod srf;
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
