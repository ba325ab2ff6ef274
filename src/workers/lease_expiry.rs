//! Expires leases: dispatches that their consumer did not report in time go back to the queue, or fail.

use super::backoff::Backoff;
use super::context::{Interruption, WorkerContext};
use super::task::{Turn, warn_of};
use crate::access::Actor;
use crate::pg::index_scan::LowerBound;
use crate::pg::interval;
use crate::pg::lock_timeout::LockTimeout;
use crate::pg::subtransaction;
use crate::pg::time::after;
use crate::pg::transaction::Failure;
use crate::recovery::leases;
use crate::runtime::{settings, stats};
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::prelude::*;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The most leases that one transaction expires; and while something is due at any moment.
const LEASES_AT_ONCE: (i32, i32) = (1_000, 50);
/// After this many failed dispatches, a transaction leaves the rest for later.
const MAX_AT_FAULT: usize = 100;
/// SKIP LOCKED waits after all for a row that a transaction has just changed and another one is changing.
const LONGEST_LOCK_WAIT_MILLIS: i32 = 50;
/// When to look again at expired leases whose rows are locked: a consumer is reporting, and its commit wakes no worker.
const LOCKED_ELSEWHERE: Duration = Duration::from_millis(100);
/// A lease that ends earlier than the last look has been taken by a transaction that was open then: one of up to this
/// length is found in time, a longer one by the look at all leases.
const OPEN_TRANSACTIONS: TimeDelta = TimeDelta::seconds(10);
const LOOK_EVERYWHERE_EVERY: Duration = Duration::from_secs(60);

pub struct LeaseExpiry {
    /// No lease ends earlier. A look from here skips the dead index entries of dispatches that were reported.
    low_water: DateTime<Utc>,
    looked_everywhere: Instant,
    next_end: DateTime<Utc>,
    backoff: Backoff,
}

/// What became of expired leases.
#[derive(Default)]
struct Expired {
    dispatches: usize,
    /// Dispatches whose lease could not be expired.
    failures: Vec<(Uuid, Failure)>,
}

impl LeaseExpiry {
    pub fn new() -> LeaseExpiry {
        LeaseExpiry {
            low_water: DateTime::UNIX_EPOCH,
            looked_everywhere: Instant::now(),
            next_end: DateTime::<Utc>::MAX_UTC,
            backoff: Backoff::new(),
        }
    }

    /// Leases have been ended that had no end.
    pub fn look_everywhere(&mut self) {
        self.low_water = DateTime::UNIX_EPOCH;
    }

    /// When the next lease ends, as known since the last look.
    pub fn next_end(&self) -> DateTime<Utc> {
        self.next_end
    }

    /// Expires leases that are over, in one transaction; returns when to look again.
    pub fn run(
        &mut self,
        context: &mut WorkerContext,
        turn: Turn,
        now: DateTime<Utc>,
    ) -> Result<DateTime<Utc>, Interruption> {
        if self.looked_everywhere.elapsed() > LOOK_EVERYWHERE_EVERY {
            self.looked_everywhere = Instant::now();
            self.low_water = DateTime::UNIX_EPOCH;
        }
        let limit = match turn {
            Turn::Full => LEASES_AT_ONCE.0,
            Turn::Small => LEASES_AT_ONCE.1,
        };
        let low_water = self.low_water;
        let first_end = move || leases::next_end(LowerBound::At(low_water));
        let (expired, next_end) = context.transaction(c"pg_recur dispatcher", move || {
            let mut expired = Expired::default();
            let mut next_end = first_end();
            if next_end.is_some_and(|end| end <= now) {
                expired = expire(now, limit);
                next_end = match expired.failures.is_empty() {
                    true => first_end(),
                    // Failed dispatches are still expired, and must not hide when the next lease ends.
                    false => leases::next_end(LowerBound::After(now)),
                };
            }
            (expired, next_end)
        })?;
        self.next_end = next_end.unwrap_or(DateTime::<Utc>::MAX_UTC);
        self.low_water = match expired.failures.is_empty() {
            true => self.next_end.min(now - OPEN_TRANSACTIONS).max(low_water),
            false => DateTime::UNIX_EPOCH,
        };
        Ok(after(now, self.pause(context, &expired, limit, now)))
    }

    /// Reports what was done; returns how long to wait before the next look.
    fn pause(
        &mut self,
        context: &WorkerContext,
        expired: &Expired,
        limit: i32,
        now: DateTime<Utc>,
    ) -> Duration {
        let dispatches = expired.dispatches;
        if dispatches > 0 {
            stats::count_expired_leases(dispatches as u64);
            log!(
                "pg_recur dispatcher: leases expired database={:?} dispatches={dispatches}",
                context.database_name
            );
        }
        // A lease that begins and ends during the sleep is found after the sleep.
        let longest = settings::check_interval();
        let until_next_end = match self.next_end {
            end if end <= now => LOCKED_ELSEWHERE,
            end => (end - now).to_std().unwrap_or(longest),
        };
        let pause = until_next_end.min(longest);
        if expired.failures.is_empty() {
            self.backoff.reset();
            let may_be_more = dispatches == limit as usize;
            return if may_be_more { Duration::ZERO } else { pause };
        }
        let pause = pause.min(self.backoff.pause());
        for (dispatch, failure) in &expired.failures {
            let work = format!("lease expiry of {dispatch}");
            warn_of(&work, context, failure, pause);
        }
        pause
    }
}

/// `recur.recover_after`: runs without a sign of life for that long fail.
pub fn give_up_abandoned(context: &mut WorkerContext) -> Result<(), Interruption> {
    let dispatches = context.transaction(c"pg_recur dispatcher", || {
        let Some(max_age) = settings::recover_after() else {
            return 0;
        };
        let _timeout = LockTimeout::of_millis(LONGEST_LOCK_WAIT_MILLIS);
        leases::give_up_abandoned(interval::from_parts(max_age), &Actor::worker())
    })?;
    if dispatches > 0 {
        log!(
            "pg_recur dispatcher: runs given up database={:?} dispatches={dispatches}",
            context.database_name
        );
    }
    Ok(())
}

/// Expires all leases together, or, if a dispatch makes that fail, all others.
fn expire(now: DateTime<Utc>, limit: i32) -> Expired {
    let _timeout = LockTimeout::of_millis(LONGEST_LOCK_WAIT_MILLIS);
    let together = subtransaction::attempt(|| leases::expire(now, limit, None));
    if let Ok(dispatches) = together {
        return Expired {
            dispatches,
            failures: Vec::new(),
        };
    }
    let mut dispatches = 0;
    let ids = leases::expired(now, limit);
    let failures = subtransaction::attempt_in_parts(&ids, MAX_AT_FAULT, |part| {
        dispatches += leases::expire(now, limit, Some(part));
    });
    let failures = failures.into_iter().map(|(id, failure)| (*id, failure));
    Expired {
        dispatches,
        failures: failures.collect(),
    }
}
