//! One batch: lock, decide, write, announce. All in the caller's transaction.

use super::errors::{self, ActionError};
use super::store::{self, DueCursor, LockedTimer};
use super::write::{WritePath, Written, write};
use crate::pg::lock_timeout::LockTimeout;
use crate::pg::subtransaction;
use crate::runtime::settings;
use crate::runtime::stats::{BatchCounts, Lateness};
use chrono::{DateTime, Utc};
use pgrx::check_for_interrupts;
use recur_core::decide::{EndReason, Mode};
use uuid::Uuid;

type Instant = DateTime<Utc>;

/// Which timers a batch takes.
pub struct Scope {
    /// The instant that the batch works for.
    pub now: Instant,
    pub timers: Timers,
}

impl Scope {
    fn write(&self, locked: &[LockedTimer], path: WritePath) -> Written {
        let mode = match self.timers {
            Timers::Due { .. } => Mode::Due,
            Timers::Ahead(ahead) => Mode::Stage { until: ahead.until },
        };
        write(locked, self.now, mode, path)
    }
}

#[derive(Clone, Copy)]
pub enum Timers {
    /// Due timers, the longest due first.
    Due {
        /// The low-water mark: no timer is due earlier.
        from: Instant,
    },
    /// Timers that are not due yet, to be staged.
    Ahead(Ahead),
}

/// Timers behind a position, up to an instant.
#[derive(Clone, Copy)]
pub struct Ahead {
    pub after: DueCursor,
    pub until: Instant,
}

/// What one batch did.
#[derive(Default)]
pub struct Batch {
    pub dispatched: usize,
    pub skipped: u64,
    /// The actions that have ended, and why.
    pub ended: Vec<(Uuid, EndReason)>,
    pub failed: usize,
    /// True if the batch took as many timers as it may: there may be more.
    pub is_full: bool,
    /// True if some of its timers are still due: only a part of their missed occurrences was dispatched.
    pub is_still_due: bool,
    /// The last of the locked timers.
    pub last: Option<DueCursor>,
    /// How many timers were left to their instant instead of being staged.
    pub left: usize,
    /// True if no timer could be locked in time, so that it is unknown which are due.
    pub timed_out: bool,
    pub lateness: Vec<Lateness>,
    /// When the first dispatch becomes available that is not available yet.
    pub available_later: Option<Instant>,
}

impl Batch {
    /// May more timers be due?
    pub fn has_more(&self) -> bool {
        self.is_full || self.is_still_due
    }

    pub fn last_due_at(&self) -> Option<Instant> {
        self.last.map(|last| last.due_at)
    }

    pub fn counts(&self) -> BatchCounts {
        BatchCounts {
            dispatched: self.dispatched as u64,
            skipped: self.skipped,
            ended: self.ended.len() as u64,
            errors: self.failed as u64,
        }
    }

    fn add(&mut self, written: Written, errors: &mut Vec<ActionError>) {
        self.dispatched += written.dispatched;
        self.skipped += written.skipped;
        self.ended.extend(written.ended);
        self.is_still_due |= written.is_still_due;
        self.left += written.left;
        self.lateness.extend(written.lateness);
        let earlier = self.available_later.into_iter();
        self.available_later = earlier.chain(written.available_later).min();
        errors.extend(written.errors);
    }
}

/// Runs one batch as the engine. An error that is not the fault of a row is raised.
pub fn run(scope: &Scope) -> Batch {
    let limit = settings::batch_size();
    let mut errors: Vec<ActionError> = Vec::new();
    // One subtransaction both locks and advances a timer: with two, the row would need a multixact.
    let together = subtransaction::attempt_unless(
        || {
            let (batch, locked) = lock(scope, limit);
            (batch, scope.write(&locked, WritePath::Optimistic))
        },
        |failure| !failure.is_about_data() && !failure.is_lock_timeout(),
    );
    let mut batch = match together {
        Ok((mut batch, written)) => {
            batch.add(written, &mut errors);
            batch
        }
        // Locked elsewhere: the timers wait for a later batch.
        Err(failure) if failure.is_lock_timeout() => {
            return Batch {
                timed_out: true,
                ..Batch::default()
            };
        }
        // A row is at fault. Written one by one, the others succeed.
        Err(_) => run_one_by_one(scope, limit, &mut errors),
    };
    batch.failed = errors.len();
    errors::record(errors, scope.now);
    batch
}

fn run_one_by_one(scope: &Scope, limit: i64, errors: &mut Vec<ActionError>) -> Batch {
    let (mut batch, locked) = lock(scope, limit);
    for timer in &locked {
        check_for_interrupts!();
        let alone = std::slice::from_ref(timer);
        match subtransaction::attempt(|| scope.write(alone, WritePath::Verified)) {
            Ok(written) => batch.add(written, errors),
            Err(failure) => errors.push(ActionError::from_failure(timer.action, failure)),
        }
    }
    batch
}

/// SKIP LOCKED waits after all for a row that a transaction has just changed and another one is changing. The other one
/// may in turn wait for rows that this transaction has locked.
const LONGEST_LOCK_WAIT_MILLIS: i32 = 50;

fn lock(scope: &Scope, limit: i64) -> (Batch, Vec<LockedTimer>) {
    let _timeout = LockTimeout::of_millis(LONGEST_LOCK_WAIT_MILLIS);
    let mut locked = match scope.timers {
        Timers::Due { from } => store::lock_due(from, scope.now, limit),
        Timers::Ahead(ahead) => store::lock_due_ahead(ahead.after, ahead.until, limit),
    };
    let batch = Batch {
        is_full: locked.len() as i64 == limit,
        last: locked.last().map(LockedTimer::cursor),
        ..Batch::default()
    };
    if locked.len() > settings::notify_each_max() {
        // Announced as a count, the order does not matter. In the order of the primary key, neighbours are on one page.
        locked.sort_unstable_by_key(|timer| timer.action);
    }
    (batch, locked)
}
