//! The maintenance worker of one database: expires leases, truncates old history, and follows roles that are renamed.

use super::backoff::Backoff;
use super::context::{Interruption, WorkerContext};
use crate::access;
use crate::history::partition;
use crate::pg::index_scan::LowerBound;
use crate::pg::lock_timeout::LockTimeout;
use crate::pg::transaction::Failure;
use crate::pg::{latch, signals, subtransaction, time};
use crate::recovery::leases;
use crate::runtime::shared::{Exit, WorkerState};
use crate::runtime::{settings, stats};
use chrono::{DateTime, Utc};
use pgrx::prelude::*;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The most leases that one transaction expires.
const LEASES_AT_ONCE: i32 = 10_000;
/// After this many failed dispatches, a transaction leaves the rest for later.
const MAX_AT_FAULT: usize = 100;
/// SKIP LOCKED waits after all for a row that a transaction has just changed and another one is changing.
const LONGEST_LOCK_WAIT_MILLIS: i32 = 50;
/// When to look again at expired leases whose rows are locked: a consumer is reporting, and its commit wakes no worker.
const LOCKED_ELSEWHERE: Duration = Duration::from_millis(100);
const HOUSEKEEPING_EVERY: Duration = Duration::from_secs(60);

pub fn serve(context: &mut WorkerContext) -> Exit {
    let mut backoff = Backoff::new();
    let mut house_kept = None;
    loop {
        signals::reload_settings();
        if context.must_leave() {
            return Exit::Asked;
        }
        context.report(WorkerState::Working, Duration::ZERO);
        let (state, sleep) = match expire_leases(context, &mut backoff, time::now()) {
            Ok(next) => next,
            Err(Interruption::Exit(exit)) => return exit,
            Err(Interruption::Failed(failure)) => {
                let pause = backoff.pause();
                warn_of("lease expiry", context, &failure, pause);
                (WorkerState::BackingOff, pause)
            }
        };
        if house_kept.is_none_or(|at: Instant| at.elapsed() > HOUSEKEEPING_EVERY) {
            house_kept = Some(Instant::now());
            if let Err(exit) = keep_house(context) {
                return exit;
            }
        }
        context.report(state, sleep);
        latch::wait(sleep);
    }
}

/// What has to be done now and then. An error is logged, and the work is tried again the next time.
fn keep_house(context: &mut WorkerContext) -> Result<(), Exit> {
    match open_next_partition(context, time::now()) {
        Ok(false) => {}
        Ok(true) => log!(
            "pg_recur maintenance: next history partition opened database={:?}",
            context.database_name
        ),
        Err(Interruption::Exit(exit)) => return Err(exit),
        Err(Interruption::Failed(failure)) => {
            warn_of("retention", context, &failure, HOUSEKEEPING_EVERY)
        }
    }
    match context.transaction(c"pg_recur maintenance", access::refresh_names) {
        Ok(()) => Ok(()),
        Err(Interruption::Exit(exit)) => Err(exit),
        Err(Interruption::Failed(failure)) => {
            warn_of("refresh of names", context, &failure, HOUSEKEEPING_EVERY);
            Ok(())
        }
    }
}

fn warn_of(work: &str, context: &WorkerContext, failure: &Failure, retry_in: Duration) {
    warning!(
        "pg_recur maintenance: {work} failed database={:?} sqlstate={} retry_in={retry_in:?} message={:?}",
        context.database_name,
        failure.sqlstate,
        failure.message
    );
}

/// What became of expired leases.
#[derive(Default)]
struct Expired {
    dispatches: usize,
    /// Dispatches whose lease could not be expired.
    failures: Vec<(Uuid, Failure)>,
}

/// Returns how long to sleep, and in which state.
fn expire_leases(
    context: &mut WorkerContext,
    backoff: &mut Backoff,
    now: DateTime<Utc>,
) -> Result<(WorkerState, Duration), Interruption> {
    let first_end = || leases::next_end(LowerBound::At(DateTime::UNIX_EPOCH));
    let (expired, next_end) = context.transaction(c"pg_recur maintenance", move || {
        let mut expired = Expired::default();
        let mut next_end = first_end();
        if next_end.is_some_and(|end| end <= now) {
            expired = expire(now);
            next_end = match expired.failures.is_empty() {
                true => first_end(),
                // Failed dispatches are still expired, and must not hide when the next lease ends.
                false => leases::next_end(LowerBound::After(now)),
            };
        }
        (expired, next_end)
    })?;
    let dispatches = expired.dispatches;
    if dispatches > 0 {
        stats::count_expired_leases(dispatches as u64);
        log!(
            "pg_recur maintenance: leases expired database={:?} dispatches={dispatches}",
            context.database_name
        );
    }
    // A lease that begins and ends during the sleep is found after the sleep.
    let longest = settings::check_interval();
    let until_next_end = match next_end {
        Some(end) if end <= now => LOCKED_ELSEWHERE,
        Some(end) => (end - now).to_std().unwrap_or(longest),
        None => longest,
    };
    let sleep = until_next_end.min(longest);
    if !expired.failures.is_empty() {
        let sleep = sleep.min(backoff.pause());
        for (dispatch, failure) in &expired.failures {
            warn_of(
                &format!("lease expiry of {dispatch}"),
                context,
                failure,
                sleep,
            );
        }
        return Ok((WorkerState::BackingOff, sleep));
    }
    backoff.reset();
    let may_be_more = dispatches == LEASES_AT_ONCE as usize;
    let sleep = if may_be_more { Duration::ZERO } else { sleep };
    Ok((WorkerState::Sleeping, sleep))
}

/// Expires all leases together, or, if a dispatch makes that fail, all others.
fn expire(now: DateTime<Utc>) -> Expired {
    let _timeout = LockTimeout::of_millis(LONGEST_LOCK_WAIT_MILLIS);
    let together = subtransaction::attempt(|| leases::expire(now, LEASES_AT_ONCE, None));
    if let Ok(dispatches) = together {
        return Expired {
            dispatches,
            failures: Vec::new(),
        };
    }
    let mut dispatches = 0;
    let ids = leases::expired(now, LEASES_AT_ONCE);
    let failures = subtransaction::attempt_in_parts(&ids, MAX_AT_FAULT, |part| {
        dispatches += leases::expire(now, LEASES_AT_ONCE, Some(part));
    });
    let failures = failures.into_iter().map(|(id, failure)| (*id, failure));
    Expired {
        dispatches,
        failures: failures.collect(),
    }
}

fn open_next_partition(
    context: &mut WorkerContext,
    now: DateTime<Utc>,
) -> Result<bool, Interruption> {
    context.transaction(c"pg_recur maintenance", move || partition::open_next(now))
}
