//! Keys by which dispatches are deduplicated. A transaction that writes a dispatch of a key, or merges with a pending
//! one, holds the lock of the key until it ends.

use crate::pg::advisory::{self, Space};
use crate::pg::interval;
use crate::runtime::settings;
use chrono::TimeDelta;
use pgrx::datum::Interval;

/// How long a dispatch stands for others with its key, where a call gives this window: None means the setting.
pub fn window(given: Option<Interval>, namespace: &str) -> Option<Interval> {
    given.or_else(|| settings::dedup_window(namespace).map(interval::from_parts))
}

/// The setting alone, for an action without a window.
pub fn default_window(namespace: &str) -> Option<TimeDelta> {
    settings::dedup_window(namespace).map(|window| TimeDelta::microseconds(window.micros))
}

/// The lock of a key. Two keys of an owner may share one, which only makes one of them wait.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyLock(u64);

impl KeyLock {
    pub fn of(owner_id: i32, namespace: &str, tenant: &str, key: &str) -> KeyLock {
        let names = [namespace, tenant, key];
        let bytes = names
            .into_iter()
            .flat_map(|name| name.bytes().chain([0x1f]));
        KeyLock(advisory::owned_key(owner_id, advisory::key(bytes) as u32))
    }

    /// Waits for the lock.
    pub fn take(self) {
        advisory::lock(Space::DedupKey, self.0);
    }

    /// True if this transaction has the lock now.
    pub fn try_take(self) -> bool {
        advisory::try_lock(Space::DedupKey, self.0)
    }
}
