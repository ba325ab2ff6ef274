//! One batch: lock, decide, write, announce. All in the caller's transaction.

use super::duplicates::KeyLocks;
use super::errors::{self, ActionError};
use super::store::{self, DueCursor, LockedTimer};
use super::write::{Ended, WritePath, Written, write};
use crate::history::lines;
use crate::pg::lock_timeout::LockTimeout;
use crate::pg::subtransaction;
use crate::pg::transaction::Failure;
use crate::runtime::settings;
use crate::runtime::stats::{BatchCounts, Lateness};
use chrono::{DateTime, Utc};
use pgrx::check_for_interrupts;
use recur_core::decide::{self, Mode};
use std::cell::Cell;

type Instant = DateTime<Utc>;

/// Which timers a batch takes.
pub struct Scope<'a> {
    /// The instant that the batch works for.
    pub now: Instant,
    pub timers: Timers,
    /// The locks of the transaction.
    pub keys: &'a KeyLocks,
}

impl Scope<'_> {
    fn write(&self, locked: &[LockedTimer], share: usize, path: WritePath) -> Written {
        let mode = match self.timers {
            Timers::Due { .. } => Mode::Due,
            Timers::Ahead(ahead) => Mode::Stage { until: ahead.until },
        };
        write(locked, share, self.now, mode, self.keys, path)
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
    pub ended: Vec<Ended>,
    pub failed: usize,
    /// True if the batch took as many timers as it may: there may be more.
    pub is_full: bool,
    /// True if some of its timers are still due: only a part of their missed occurrences was dispatched.
    pub is_still_due: bool,
    /// The last of the locked timers.
    pub last: Option<DueCursor>,
    /// How many timers were left for later: to their instant instead of being staged, or until their rows are free.
    pub left: usize,
    /// True if some of them were left because one transaction locks only a limited number of keys.
    pub lacks_locks: bool,
    /// True if no timer could be locked in time, so that it is unknown which are due.
    pub timed_out: bool,
    pub lateness: Vec<Lateness>,
    /// When the first dispatch becomes available that is not available yet.
    pub available_later: Option<Instant>,
}

impl Batch {
    /// May more timers be due?
    pub fn has_more(&self) -> bool {
        self.is_full || self.is_still_due || self.lacks_locks
    }

    fn timed_out() -> Batch {
        Batch {
            timed_out: true,
            ..Batch::default()
        }
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
        self.lacks_locks |= written.lacks_locks;
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
    let has_locked = Cell::new(false);
    let keys_left = scope.keys.left();
    let together = attempt(LONGEST_LOCK_WAIT_MILLIS, || {
        let (batch, locked) = lock(scope, limit);
        has_locked.set(true);
        let share = decide::share_of_batch(locked.len());
        (batch, scope.write(&locked, share, WritePath::Optimistic))
    });
    let mut batch = match together {
        Ok((mut batch, written)) => {
            batch.add(written, &mut errors);
            batch
        }
        Err(failure) if failure.is_lock_timeout() && !has_locked.get() => {
            return Batch::timed_out();
        }
        // A row is at fault, or locked elsewhere. Written one by one, the others succeed.
        Err(_) => {
            scope.keys.restore(keys_left);
            run_one_by_one(scope, limit, &mut errors)
        }
    };
    batch.failed = errors.len();
    errors::record(errors, scope.now);
    batch
}

fn run_one_by_one(scope: &Scope, limit: i64, errors: &mut Vec<ActionError>) -> Batch {
    let locking = attempt_unless(
        LONGEST_LOCK_WAIT_MILLIS,
        || lock(scope, limit),
        |failure| !failure.is_lock_timeout(),
    );
    let Ok((mut batch, locked)) = locking else {
        return Batch::timed_out();
    };
    let share = decide::share_of_batch(locked.len());
    let mut lock_timeouts = 0;
    for timer in &locked {
        check_for_interrupts!();
        let wait = match lock_timeouts < PATIENT_LOCK_WAITS {
            true => LONGEST_LOCK_WAIT_MILLIS,
            false => SHORTEST_LOCK_WAIT_MILLIS,
        };
        let alone = std::slice::from_ref(timer);
        match attempt(wait, || scope.write(alone, share, WritePath::Verified)) {
            Ok(written) => batch.add(written, errors),
            // The timer stays due, and a later batch writes it.
            Err(failure) if failure.is_lock_timeout() => {
                lock_timeouts += 1;
                lines::skipped_locked(|| vec![timer.action]);
                batch.left += 1;
            }
            Err(failure) => errors.push(ActionError::from_failure(timer.action, failure)),
        }
    }
    batch
}

/// A failure that is neither about data nor about locks is raised.
fn attempt<R>(lock_wait_millis: i32, body: impl FnOnce() -> R) -> Result<R, Failure> {
    attempt_unless(lock_wait_millis, body, |failure| {
        !failure.is_about_data() && !failure.is_lock_timeout()
    })
}

/// In a subtransaction that waits for no lock longer than this.
fn attempt_unless<R>(
    lock_wait_millis: i32,
    body: impl FnOnce() -> R,
    is_raised: fn(&Failure) -> bool,
) -> Result<R, Failure> {
    let limited = || {
        let _timeout = LockTimeout::of_millis(lock_wait_millis);
        body()
    };
    subtransaction::attempt_unless(limited, is_raised)
}

/// A batch waits for locks all the same: SKIP LOCKED for a row that a transaction has just changed and another one is
/// changing, an insert for a transaction that is about to remove a dispatch of the same id. That transaction may stay
/// open, or in turn wait for rows that this one has locked.
const LONGEST_LOCK_WAIT_MILLIS: i32 = 50;
/// After some waits in vain, the timers that are left are only tried: a batch of a thousand of them takes a second.
const PATIENT_LOCK_WAITS: usize = 5;
const SHORTEST_LOCK_WAIT_MILLIS: i32 = 1;

fn lock(scope: &Scope, limit: i64) -> (Batch, Vec<LockedTimer>) {
    let mut locked = match scope.timers {
        Timers::Due { from } => store::lock_due(from, scope.now, limit),
        Timers::Ahead(ahead) => store::lock_due_ahead(ahead.after, ahead.until, limit),
    };
    let batch = Batch {
        is_full: locked.len() as i64 == limit,
        last: locked.last().map(LockedTimer::cursor),
        ..Batch::default()
    };
    if let (Timers::Due { from }, false) = (scope.timers, batch.is_full) {
        lines::skipped_locked(|| store::skipped_locked(from, scope.now, &locked));
    }
    if locked.len() > settings::notify_each_max() {
        // Announced as a count, the order does not matter. In the order of the primary key, neighbours are on one page.
        locked.sort_unstable_by_key(|timer| timer.action);
    }
    (batch, locked)
}
