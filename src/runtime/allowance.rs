//! How many rows an owner may have, where to count them for each new one would cost more than the row.
//!
//! A session counts now and then, and in between makes at most an eighth of what was left. One session alone never
//! exceeds the limit; each of several may exceed it by that eighth.

use super::clock;
use chrono::{DateTime, TimeDelta, Utc};
use std::cell::Cell;

/// What others have made since is not known for longer than this.
const COUNTED_AGAIN_AFTER: TimeDelta = TimeDelta::seconds(1);

/// What the session knows of the owner that has made one last.
pub struct Allowance(Cell<Option<Known>>);

/// How many more an owner may make before they are counted again.
#[derive(Clone, Copy)]
struct Known {
    owner_id: i32,
    limit: i64,
    left: i64,
    counted_at: DateTime<Utc>,
}

impl Allowance {
    pub const fn new() -> Allowance {
        Allowance(Cell::new(None))
    }

    /// May the owner make one more? `count` says how many there are. A limit of 0 is none.
    pub fn take(&self, owner_id: i32, limit: i64, count: impl FnOnce() -> i64) -> bool {
        if limit == 0 {
            return true;
        }
        let now = clock::now();
        let is_current = |one: &Known| {
            let age = now - one.counted_at;
            let is_recent = age >= TimeDelta::zero() && age < COUNTED_AGAIN_AFTER;
            one.owner_id == owner_id && one.limit == limit && one.left > 0 && is_recent
        };
        if let Some(known) = self.0.get().filter(is_current) {
            self.0.set(Some(Known {
                left: known.left - 1,
                ..known
            }));
            return true;
        }
        let counted = count();
        if counted >= limit {
            return false;
        }
        self.0.set(Some(Known {
            owner_id,
            limit,
            left: (limit - counted) / 8,
            counted_at: now,
        }));
        true
    }
}
