//! Thin wrappers around the server: what is unsafe, version-dependent or wordy about PostgreSQL lives here, so that the
//! rest reads as ordinary Rust.

pub mod advisory;
pub mod catalog;
pub mod columns;
pub mod compat;
pub mod cpu;
pub mod error;
pub mod identity;
pub mod index_scan;
pub mod interval;
pub mod invalidation;
pub mod jsonb;
pub mod jsonb_object;
pub mod latch;
pub mod lock_timeout;
pub mod planner;
pub mod prepared;
pub mod query;
pub mod signals;
pub mod srf;
pub mod subtransaction;
pub mod time;
pub mod transaction;

use pgrx::pg_sys;

/// Is the postmaster loading `shared_preload_libraries` right now? Only then may shared memory be requested and static
/// workers be registered.
pub fn preloading() -> bool {
    // SAFETY: a variable of this process, which has one thread.
    unsafe { pg_sys::process_shared_preload_libraries_in_progress }
}

/// The database that this process is connected to.
pub fn my_database() -> pg_sys::Oid {
    // SAFETY: a variable that is set once, when the process connects.
    unsafe { pg_sys::MyDatabaseId }
}

/// The id of this process.
pub fn my_pid() -> i32 {
    // SAFETY: a variable that is set once, when the process starts.
    unsafe { pg_sys::MyProcPid }
}
