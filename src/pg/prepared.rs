//! Prepared transactions that the workers must hear of when somebody commits them: another session, perhaps after a
//! restart.
//!
//! Such a transaction takes a lock that stands for its name. The server keeps locks of prepared transactions until they
//! end, over restarts, crashes and a failover. The session that commits one sees from the lock that it changed
//! something, and no other commit is mistaken for one that did.

use super::advisory::{self, Space};
use pgrx::pg_sys;
use std::ffi::CStr;

/// The name of a prepared transaction, as far as locks can tell names apart. Of two names that share a lock both count
/// as marked.
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
