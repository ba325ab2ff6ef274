//! Locks of the extension's own, in the space of advisory locks but out of reach of `pg_advisory_lock`.
//!
//! Every role that may connect can take any lock of `pg_advisory_lock` and so block sessions that wait for it. Those
//! locks have 1 or 2 in the last field of their tag; the extension's locks have other numbers.

use super::my_database;
use pgrx::pg_sys;

/// What a lock stands for.
#[derive(Clone, Copy)]
#[repr(u16)]
pub enum Space {
    PreparedTransaction = 0x5263,
    LockGroup = 0x5264,
    DedupKey = 0x5265,
    Endpoint = 0x5266,
}

/// Waits for a lock, and takes it until the transaction ends.
pub fn lock(space: Space, key: u64) {
    acquire(space, key, pg_sys::ExclusiveLock, false);
}

/// Takes a lock until the transaction ends, unless another transaction has it. True if this one has it now.
pub fn try_lock(space: Space, key: u64) -> bool {
    acquire(space, key, pg_sys::ExclusiveLock, true)
}

/// Takes a lock in a mode; true if the transaction has it.
pub fn acquire(space: Space, key: u64, mode: u32, unless_taken: bool) -> bool {
    let tag = pg_sys::LOCKTAG {
        locktag_field1: my_database().to_u32(),
        locktag_field2: (key >> 32) as u32,
        locktag_field3: key as u32,
        locktag_field4: space as u16,
        locktag_type: pg_sys::LockTagType::LOCKTAG_ADVISORY as u8,
        locktag_lockmethodid: pg_sys::USER_LOCKMETHOD as u8,
    };
    // SAFETY: every field of the tag is set, and the lock is released with the transaction.
    let result =
        unsafe { pg_sys::LockAcquire(&tag, mode as pg_sys::LOCKMODE, false, unless_taken) };
    result != pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL
}

/// The key of something that belongs to an owner. Keys of two owners are never the same: no role can hold up another
/// owner with a text whose hash is that of the other's.
pub fn owned_key(owner_id: i32, hash: u32) -> u64 {
    (u64::from(owner_id as u32) << 32) | u64::from(hash)
}

/// A key for a text: FNV-1a.
pub fn key(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes
        .into_iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}
