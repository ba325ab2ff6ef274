//! The maintenance worker of one database: gives back what consumers have left lying, and lets old history go.

use super::worker::{Departs, Post};
use super::{Backoff, reload_settings};
use crate::dispatch::store;
use crate::pg::lock_timeout::LockTimeout;
use crate::pg::peek::From;
use crate::pg::{latch, subtransaction, time, transaction};
use crate::shared::{Departure, WorkerState};
use crate::{guc, stats};
use chrono::{DateTime, Utc};
use pgrx::prelude::*;
use pgrx::spi::SpiResult;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// So many expired leases in one transaction.
const LEASES_AT_ONCE: i32 = 10_000;
/// With more of them at fault in one transaction, the others of it are left for later, too.
const MOST_AT_FAULT: usize = 100;
/// It skips what is locked, but SKIP LOCKED waits after all where a row was changed by one transaction, which has just ended, and is
/// being changed by another.
const SKIPPING_WAITS_AT_MOST: i32 = 50;
/// Expired but locked: a consumer is just reporting. His commit does not wake us.
const LOCKED_ELSEWHERE: Duration = Duration::from_millis(100);
const TURN_HISTORY_EVERY: Duration = Duration::from_secs(60);

pub fn serve(post: &mut Post) -> Departure {
    let mut backoff = Backoff::new();
    let mut history_looked_at = None;
    loop {
        reload_settings();
        if post.is_to_be_left() {
            return Departure::Asked;
        }
        post.report(WorkerState::Working, Duration::ZERO);
        let (state, sleep) = match expire_leases(post, &mut backoff, time::now()) {
            Ok(Err(Departs(departure))) => return departure,
            Ok(Ok(next)) => next,
            Err(failure) => {
                let pause = backoff.pause();
                warn_of("lease expiry", post, &failure, pause);
                (WorkerState::BackingOff, pause)
            }
        };
        if history_looked_at.is_none_or(|at: Instant| at.elapsed() > TURN_HISTORY_EVERY) {
            history_looked_at = Some(Instant::now());
            match turn_history(post, time::now()) {
                Ok(Err(Departs(departure))) => return departure,
                Ok(Ok(false)) => {}
                Ok(Ok(true)) => log!(
                    "pg_recur maintenance: next history partition opened database={:?}",
                    post.database_name
                ),
                Err(failure) => warn_of("retention", post, &failure, TURN_HISTORY_EVERY),
            }
        }
        post.report(state, sleep);
        latch::wait(sleep);
    }
}

fn warn_of(work: &str, post: &Post, failure: &transaction::Failure, retry_in: Duration) {
    warning!(
        "pg_recur maintenance: {work} failed database={:?} sqlstate={} retry_in={retry_in:?} message={:?}",
        post.database_name,
        failure.sqlstate,
        failure.message
    );
}

/// What became of the leases that had expired.
#[derive(Default)]
struct Expired {
    dispatches: i64,
    /// These could not be given back.
    failures: Vec<(Uuid, transaction::Failure)>,
}

/// Returns how long to sleep, and as what.
fn expire_leases(
    post: &mut Post,
    backoff: &mut Backoff,
    now: DateTime<Utc>,
) -> Result<Result<(WorkerState, Duration), Departs>, transaction::Failure> {
    let first_end = || store::next_lease_end(From::At(DateTime::UNIX_EPOCH));
    let turn = post.transaction(c"pg_recur maintenance", move || {
        let mut expired = Expired::default();
        let mut next_end = first_end();
        if next_end.is_some_and(|end| end <= now) {
            expired = or_raise(give_back(now));
            next_end = match expired.failures.is_empty() {
                true => first_end(),
                // Those that failed are still there; the others' ends are not slept through because of them.
                false => store::next_lease_end(From::After(now)),
            };
        }
        (expired, next_end)
    })?;
    let (expired, next_end) = match turn {
        Ok(done) => done,
        Err(departs) => return Ok(Err(departs)),
    };
    let dispatches = expired.dispatches;
    if dispatches > 0 {
        stats::count_expired_leases(dispatches.unsigned_abs());
        log!(
            "pg_recur maintenance: leases expired database={:?} dispatches={dispatches}",
            post.database_name
        );
    }
    // A lease that is shorter than the rest of this sleep is found when the sleep is over.
    let longest = guc::check_interval();
    let until_next_end = match next_end {
        Some(end) if end <= now => LOCKED_ELSEWHERE,
        Some(end) => (end - now).to_std().unwrap_or(longest),
        None => longest,
    };
    let sleep = until_next_end.min(longest);
    if !expired.failures.is_empty() {
        let sleep = sleep.min(backoff.pause());
        for (dispatch, failure) in &expired.failures {
            warn_of(&format!("lease expiry of {dispatch}"), post, failure, sleep);
        }
        return Ok(Ok((WorkerState::BackingOff, sleep)));
    }
    backoff.reset();
    let may_be_more = dispatches == i64::from(LEASES_AT_ONCE);
    let sleep = if may_be_more { Duration::ZERO } else { sleep };
    Ok(Ok((WorkerState::Sleeping, sleep)))
}

/// Together, or, if one of them makes that fail, without those that do.
fn give_back(now: DateTime<Utc>) -> SpiResult<Expired> {
    let _patience = LockTimeout::of_millis(SKIPPING_WAITS_AT_MOST);
    let together = subtransaction::attempt(|| store::expire_leases(now, LEASES_AT_ONCE, None));
    if let Ok(dispatches) = together {
        return Ok(Expired {
            dispatches: dispatches?,
            failures: Vec::new(),
        });
    }
    let mut dispatches = 0;
    let ids = store::expired_leases(now, LEASES_AT_ONCE)?;
    let failures = subtransaction::attempt_in_parts(&ids, MOST_AT_FAULT, |part| {
        dispatches += or_raise(store::expire_leases(now, LEASES_AT_ONCE, Some(part)));
    });
    let failures = failures.into_iter().map(|(id, failure)| (*id, failure));
    Ok(Expired {
        dispatches,
        failures: failures.collect(),
    })
}

fn or_raise<T>(outcome: SpiResult<T>) -> T {
    outcome.unwrap_or_else(|error| pgrx::error!("pg_recur: {error}"))
}

fn turn_history(
    post: &mut Post,
    now: DateTime<Utc>,
) -> Result<Result<bool, Departs>, transaction::Failure> {
    let retention = guc::retention();
    post.transaction(c"pg_recur maintenance", move || {
        or_raise(store::turn_history(&retention, now))
    })
}
