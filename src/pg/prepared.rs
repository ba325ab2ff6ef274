//! Prepared transactions that the workers must hear of when somebody commits them: another session, perhaps after a restart.
//!
//! Such a transaction takes a lock that stands for its name. The server keeps its locks until it ends, over restarts, crashes and a
//! failover. So whoever commits it sees from the lock that it has news, and no commit of another one is taken for one that has.

use super::my_database;
use pgrx::pg_sys;
use std::ffi::CStr;

/// The name of a prepared transaction, as far as locks can tell names apart. Two that share one are both taken to have news.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Name(u64);

/// Locks of users, as pg_advisory_lock takes them, have 1 or 2 here.
const KIND: u16 = 0x5263;

impl Name {
    /// FNV-1a.
    pub fn of(gid: &CStr) -> Name {
        let hash = gid
            .to_bytes()
            .iter()
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            });
        Name(hash)
    }

    /// The transaction that is about to be prepared under this name has news.
    pub fn mark(self) {
        self.lock(pg_sys::RowExclusiveLock, false);
    }

    /// Has it? What is found stays true until this transaction, which commits it, ends: nobody marks it meanwhile.
    pub fn is_marked(self) -> bool {
        !self.lock(pg_sys::ShareLock, true)
    }

    /// Until the transaction ends. Those who mark are in nobody's way but that of those who ask, and those who ask in nobody's but theirs.
    fn lock(self, mode: u32, unless_taken: bool) -> bool {
        let tag = pg_sys::LOCKTAG {
            locktag_field1: my_database().to_u32(),
            locktag_field2: (self.0 >> 32) as u32,
            locktag_field3: self.0 as u32,
            locktag_field4: KIND,
            locktag_type: pg_sys::LockTagType::LOCKTAG_ADVISORY as u8,
            locktag_lockmethodid: pg_sys::USER_LOCKMETHOD as u8,
        };
        let result =
            unsafe { pg_sys::LockAcquire(&tag, mode as pg_sys::LOCKMODE, false, unless_taken) };
        result != pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL
    }
}
