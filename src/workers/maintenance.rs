//! The maintenance worker of one database: gives back what consumers have left lying, and lets old history go.

use super::worker::{Departs, Post};
use super::{Backoff, reload_settings};
use crate::dispatch::store;
use crate::pg::{latch, time, transaction};
use crate::shared::{Departure, WorkerState};
use crate::{guc, stats};
use chrono::{DateTime, Utc};
use pgrx::prelude::*;
use pgrx::spi::SpiResult;
use std::time::{Duration, Instant};

/// So many expired leases in one transaction.
const LEASES_AT_ONCE: i32 = 10_000;
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
        let (state, sleep) = match expire_leases(post, time::now()) {
            Ok(Err(Departs(departure))) => return departure,
            Ok(Ok(sleep)) => {
                backoff.reset();
                (WorkerState::Sleeping, sleep)
            }
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

/// Returns how long to sleep.
fn expire_leases(
    post: &mut Post,
    now: DateTime<Utc>,
) -> Result<Result<Duration, Departs>, transaction::Failure> {
    let work = move || -> SpiResult<_> {
        let mut next_end = store::next_lease_end();
        let mut expired = 0;
        if next_end.is_some_and(|end| end <= now) {
            expired = store::expire_leases(now, LEASES_AT_ONCE)?;
            next_end = store::next_lease_end();
        }
        Ok((expired, next_end))
    };
    let turn = post.transaction(c"pg_recur maintenance", move || match work() {
        Ok(done) => done,
        Err(error) => pgrx::error!("pg_recur: {error}"),
    })?;
    let (expired, next_end) = match turn {
        Ok(done) => done,
        Err(departs) => return Ok(Err(departs)),
    };
    if expired > 0 {
        stats::count_expired_leases(expired.unsigned_abs());
        log!(
            "pg_recur maintenance: leases expired database={:?} dispatches={expired}",
            post.database_name
        );
    }
    // A lease that is shorter than the rest of this sleep is found when the sleep is over.
    let longest = guc::check_interval();
    Ok(Ok(match next_end {
        _ if expired == i64::from(LEASES_AT_ONCE) => Duration::ZERO,
        // Expired but locked: its consumer is just reporting.
        Some(end) if end <= now => Duration::from_millis(100).min(longest),
        Some(end) => (end - now).to_std().unwrap_or(longest).min(longest),
        None => longest,
    }))
}

fn turn_history(
    post: &mut Post,
    now: DateTime<Utc>,
) -> Result<Result<bool, Departs>, transaction::Failure> {
    let retention = guc::retention();
    post.transaction(c"pg_recur maintenance", move || {
        match store::turn_history(&retention, now) {
            Ok(turned) => turned,
            Err(error) => pgrx::error!("pg_recur: {error}"),
        }
    })
}
