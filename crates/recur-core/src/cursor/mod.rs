//! The claim cursor: where a session's next claim begins to look.
//!
//! Pending dispatches are claimed in the order of the index: priority from the highest on, then `available_at`,
//! then `created_at`. Two things make that expensive. While a snapshot is held open, the index keeps an entry for
//! every dispatch that was ever pending, and a claim scans all of these dead entries. And a claim that filters by
//! what is not in the index, such as action types, scans what others are to claim. So a session remembers, for each
//! filter that it claims with:
//!
//! - a priority hint: the priority at which the last claim was satisfied. The next claim begins there, if that is
//!   still the highest one;
//! - a cursor, after claims have been expensive: the position of the first dispatch of that priority that could be
//!   claimed. The next claim begins there.
//!
//! A cursor can be wrong: a dispatch can become claimable behind it, such as one that is written with an
//! `available_at` in the past, or whose lock group has become free. These invariants bound the harm:
//!
//! - A claim never returns less than it could. When it comes up short behind a cursor, it drops the cursor and
//!   scans the whole priority.
//! - A cursor is trusted for at most [`TRUST_FACTOR`] times what the scan cost that set it, and for at most
//!   [`MAX_TRUST`]. Moving it does not prolong that.
//! - A higher priority is always seen: a hint is used only if no higher priority is pending. Such a pre-emption
//!   leaves the cursor in place.
//!
//! [`Claim`] is a state machine that the caller drives: it asks for one statement after the other, see [`Step`], and
//! takes the answer of each.

mod claim;
mod memory;
#[cfg(test)]
mod tests;

pub use claim::{Claim, Cost, Step};
pub use memory::{Filter, Memory};

use chrono::TimeDelta;

/// The number of filters that a session remembers; the least recently used one is dropped.
pub const MAX_FILTERS: usize = 64;
/// After this many claims many dead entries lie behind the cursor as well: it is moved.
pub const REFRESH_AFTER_USES: u32 = 16;
/// Scanning the whole priority takes at most a twentieth of the time.
pub const TRUST_FACTOR: i32 = 20;
/// The whole priority is scanned at least this often.
pub const MAX_TRUST: TimeDelta = TimeDelta::seconds(60);
/// A claim that finds what it looks for at once takes less CPU time than this, and [`USUAL_COST_EACH`] per dispatch.
pub const USUAL_COST: TimeDelta = TimeDelta::microseconds(500);
/// See [`USUAL_COST`].
pub const USUAL_COST_EACH: TimeDelta = TimeDelta::microseconds(30);

/// A place in the order of the index within one priority: what is stored in the two columns, such as the
/// microseconds of PostgreSQL's `timestamptz`, where `i64::MIN` is `-infinity`. It is handed back as it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// When the dispatch becomes available.
    pub available_at: i64,
    /// When the dispatch was written. Very many may become available at one instant.
    pub created_at: i64,
}
