//! Thin wrappers around the server: what is unsafe, version-dependent or wordy about PostgreSQL lives here, so that the
//! rest reads as ordinary Rust.

pub mod advisory;
pub mod bare;
pub mod catalog;
pub mod catch;
pub mod columns;
pub mod command;
pub mod compat;
pub mod cpu;
pub mod error;
pub mod function;
pub mod identity;
pub mod index_scan;
pub mod interval;
pub mod invalidation;
pub mod jsonb;
mod jsonb_digits;
pub mod jsonb_object;
pub mod latch;
pub mod lock_timeout;
pub mod log;
pub mod messages;
pub mod parse;
pub mod planner;
pub mod prepared;
pub mod query;
pub mod receiver;
pub mod relation_lock;
pub mod session;
pub mod setting;
pub mod signals;
pub mod srf;
pub mod statement_timeout;
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

/// The identifier that initdb gave the cluster, as `pg_control_system` shows it.
pub fn system_identifier() -> i64 {
    // SAFETY: reads the copy of the control file that every process has.
    unsafe { pg_sys::GetSystemIdentifier() as i64 }
}

/// Does pg_upgrade use this server at the moment?
pub fn is_binary_upgrade() -> bool {
    // SAFETY: a variable that is set once, when the server starts.
    unsafe { pg_sys::IsBinaryUpgrade }
}

/// The id of this process.
pub fn my_pid() -> i32 {
    // SAFETY: a variable that is set once, when the process starts.
    unsafe { pg_sys::MyProcPid }
}

/// Can this process read tables now? It has a database, and a transaction that has not failed.
pub fn can_read_tables() -> bool {
    // SAFETY: only reads the state of this process.
    unsafe { pg_sys::IsTransactionState() && pg_sys::MyDatabaseId != pg_sys::InvalidOid }
}
