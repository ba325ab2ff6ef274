//! Prepared transactions that concern the workers. Another session commits such a transaction, perhaps after a restart,
//! and must then wake the workers.
//!
//! The transaction takes a lock that stands for its name. The server keeps the locks of prepared transactions until
//! they end, over restarts, crashes and a failover. From the lock, the session that runs COMMIT PREPARED sees that
//! there is something to announce; a prepared transaction without the lock wakes no worker.

use super::advisory::{self, Space};
use pgrx::pg_sys;
use std::ffi::CStr;

/// The name of a prepared transaction, hashed. If two names have the same hash, marking one marks both.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Name(u64);

impl Name {
    pub fn of(gid: &CStr) -> Name {
        Name(advisory::key(gid.to_bytes().iter().copied()))
    }

    /// Marks the transaction that is about to be prepared under this name. Markers take RowExclusive, which conflicts
    /// only with the probe's Share.
    pub fn mark(self) {
        advisory::acquire(
            Space::PreparedTransaction,
            self.0,
            pg_sys::RowExclusiveLock,
            false,
        );
    }

    /// Was the transaction of this name marked? The answer holds until this transaction, which commits the other one,
    /// ends.
    pub fn is_marked(self) -> bool {
        !advisory::acquire(Space::PreparedTransaction, self.0, pg_sys::ShareLock, true)
    }
}
