//! A dispatcher of one database: sleeps until the next instant, dispatches what is due, and so on.

use super::worker::{Departs, Post};
use super::{Backoff, reload_settings};
use crate::dispatch::decide::EndReason;
use crate::dispatch::tick::{self, Order, Scope, Tick};
use crate::dispatch::{announce, store};
use crate::pg::{latch, subtransaction, time, transaction};
use crate::shared::{self, Departure, Posted, WorkerState};
use crate::{guc, stats};
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::prelude::*;
use pgrx::spi::SpiResult;
use std::time::{Duration, Instant};

/// So many actions due at one instant are a herd: their dispatches are staged ahead of it. A batch or less is dispatched
/// in a few hundredths of a second anyway.
const HERD: i64 = 1_000;
/// From time to time the dispatcher looks at all timers, whatever it believes: a safety net below the safety net.
const LOOK_EVERYWHERE_EVERY: Duration = Duration::from_secs(60);
/// Rows that are due but locked by somebody else: his commit may wake us, his rollback does not. We look again soon, and
/// then less and less often.
const LOCKED_ELSEWHERE: (Duration, Duration) =
    (Duration::from_millis(2), Duration::from_millis(100));
const SUMMARY_EVERY: Duration = Duration::from_secs(60);

/// Dispatches until there is a reason to leave.
pub fn serve(post: &mut Post, number: u8) -> Departure {
    let mut dispatcher = Dispatcher::new(number);
    let mut backoff = Backoff::new();
    loop {
        reload_settings();
        if post.is_to_be_left() || usize::from(number) >= guc::dispatchers() {
            return Departure::Asked;
        }
        post.report(WorkerState::Working, Duration::ZERO);
        let posted = shared::take_posted(post.slot);
        let (state, sleep) = match dispatcher.run_once(post, posted, time::now()) {
            Ok(Err(Departs(departure))) => return departure,
            Ok(Ok(sleep)) => {
                backoff.reset();
                (WorkerState::Sleeping, sleep)
            }
            Err(failure) => {
                let pause = backoff.pause();
                stats::count_failed_batch();
                warning!(
                    "pg_recur dispatcher: batch failed database={:?} sqlstate={} retry_in={pause:?} message={:?}",
                    post.database_name,
                    failure.sqlstate,
                    failure.message
                );
                // It is not known what came of it: look at everything.
                dispatcher = Dispatcher::new(number);
                (WorkerState::BackingOff, pause)
            }
        };
        dispatcher.summarize(&post.database_name);
        post.report(state, sleep);
        latch::wait(sleep);
    }
}

/// None of PostgreSQL's instants is earlier than what chrono can hold; `-infinity` stands for all of them.
fn instant(micros: pg_sys::TimestampTz) -> DateTime<Utc> {
    time::from_micros(micros).unwrap_or(DateTime::UNIX_EPOCH)
}

struct Dispatcher {
    number: u8,
    /// No timer is due before: scanning from here spares the index entries that earlier advances have left behind.
    low_water: DateTime<Utc>,
    /// When the next timer is due, as far as was known when it last went to sleep.
    expected: DateTime<Utc>,
    /// While a backlog is drained, oldest first: how far it has come.
    drained_until: Option<DateTime<Utc>>,
    looked_everywhere: Instant,
    /// While a backlog is drained, all take turns: who has been due longest, the tenants, those without one.
    turn: Turn,
    last_tenant: String,
    /// How far those without a tenant have come.
    untenanted_until: Option<DateTime<Utc>>,
    /// The instant whose herd has been looked for.
    herd_checked: Option<DateTime<Utc>>,
    staging: Option<DateTime<Utc>>,
    /// Up to here, what became available has been announced.
    announced_until: DateTime<Utc>,
    /// How long to wait for rows that are locked elsewhere.
    locked_wait: Duration,
    summary: Summary,
}

#[derive(Clone, Copy)]
enum Turn {
    Oldest,
    Tenants,
    Untenanted,
}

struct Summary {
    since: Instant,
    batches: u64,
    dispatched: usize,
    skipped: u64,
    ended: usize,
    failed: usize,
}

impl Summary {
    fn new() -> Summary {
        Summary {
            since: Instant::now(),
            batches: 0,
            dispatched: 0,
            skipped: 0,
            ended: 0,
            failed: 0,
        }
    }
}

/// What a turn found out about the time to come.
#[derive(Default)]
struct Outlook {
    next_instant: Option<DateTime<Utc>>,
    next_available: Option<DateTime<Utc>>,
    herd: i64,
}

impl Dispatcher {
    fn new(number: u8) -> Dispatcher {
        Dispatcher {
            number,
            low_water: DateTime::UNIX_EPOCH,
            expected: DateTime::UNIX_EPOCH,
            drained_until: None,
            looked_everywhere: Instant::now(),
            turn: Turn::Oldest,
            last_tenant: String::new(),
            untenanted_until: None,
            herd_checked: None,
            staging: None,
            announced_until: DateTime::UNIX_EPOCH,
            locked_wait: LOCKED_ELSEWHERE.0,
            summary: Summary::new(),
        }
    }

    /// One batch in one transaction; returns how long to sleep after it.
    fn run_once(
        &mut self,
        post: &mut Post,
        posted: Posted,
        now: DateTime<Utc>,
    ) -> Result<Result<Duration, Departs>, transaction::Failure> {
        self.take_note(posted);
        // What is left of a herd whose instant has come is due like anything else.
        self.staging = self.staging.filter(|instant| *instant > now);
        let scope = self.scope(now);
        let herd_instant = self.staging;
        let (announced_until, herd_checked, low_water) =
            (self.announced_until, self.herd_checked, self.low_water);
        let announces = self.number == 0;
        let may_be_due = herd_instant.is_some()
            || !matches!(scope.order, Order::Oldest)
            || self.drained_until.is_some()
            || self.expected <= now;
        let turn = post.transaction(c"pg_recur dispatcher", move || {
            // Woken by the safety net, or by a change: a peek is enough to see that there is nothing to do.
            let peeked = (!may_be_due).then(|| or_raise(store::next_instant(low_water)));
            let nothing_due = peeked.is_some_and(|next| next.is_none_or(|next| next > now));
            let tick = match nothing_due {
                true => Tick::default(),
                false => tick::run_batch(&scope),
            };
            let staged = herd_instant.map(|instant| {
                tick::run_batch(&Scope {
                    now,
                    from: now,
                    order: Order::Staged { instant },
                })
            });
            let look = || -> SpiResult<Outlook> {
                let next_available = match announces {
                    true => announce_and_look(announced_until, now)?,
                    false => None,
                };
                // While there is more to do, nobody asks what comes after.
                if tick.more() || !matches!(scope.order, Order::Oldest) {
                    return Ok(Outlook::default());
                }
                let next_instant = match peeked {
                    Some(next) if nothing_due => next,
                    _ => store::next_instant(low_water)?,
                };
                let herd = match next_instant {
                    Some(next) if is_near(next, now) && herd_checked != next_instant => {
                        store::count_due_at(next, HERD)?
                    }
                    _ => 0,
                };
                Ok(Outlook {
                    next_instant,
                    next_available,
                    herd,
                })
            };
            let outlook = or_raise(look());
            (scope, tick, staged, outlook)
        })?;
        let (scope, tick, staged, outlook) = match turn {
            Ok(turn) => turn,
            Err(departs) => return Ok(Err(departs)),
        };
        self.announced_until = now;
        self.count(&tick);
        if let Some(staged) = &staged {
            self.count(staged);
        }
        Ok(Ok(self.plan(&scope, &tick, staged.as_ref(), &outlook)))
    }

    /// Somebody has set a timer to an instant before those that are looked at, or a dispatch to become available.
    fn take_note(&mut self, posted: Posted) {
        if self.looked_everywhere.elapsed() > LOOK_EVERYWHERE_EVERY {
            self.looked_everywhere = Instant::now();
            self.low_water = DateTime::UNIX_EPOCH;
        }
        if let Some(due_at) = posted.due_at {
            self.low_water = self.low_water.min(instant(due_at));
            self.drained_until = None;
            self.untenanted_until = None;
            self.herd_checked = None;
        }
        if let Some(available_at) = posted.available_at {
            let just_before = instant(available_at) - TimeDelta::microseconds(1);
            self.announced_until = self.announced_until.min(just_before);
        }
    }

    fn scope(&self, now: DateTime<Utc>) -> Scope {
        let (from, order) = match self.turn {
            Turn::Oldest => (self.drained_until, Order::Oldest),
            Turn::Tenants => (
                None,
                Order::Fair {
                    after_tenant: self.last_tenant.clone(),
                },
            ),
            Turn::Untenanted => (self.untenanted_until, Order::Untenanted),
        };
        Scope {
            now,
            from: from.unwrap_or(self.low_water),
            order,
        }
    }

    /// What comes next, and in how long.
    fn plan(
        &mut self,
        scope: &Scope,
        tick: &Tick,
        staged: Option<&Tick>,
        outlook: &Outlook,
    ) -> Duration {
        match self.turn {
            Turn::Tenants => {
                self.turn = Turn::Untenanted;
                self.last_tenant = tick.last_tenant.clone().unwrap_or_default();
                return Duration::ZERO;
            }
            Turn::Untenanted => {
                self.turn = Turn::Oldest;
                self.untenanted_until = match tick.full {
                    true => tick.last_due_at,
                    false => Some(scope.now),
                };
                return Duration::ZERO;
            }
            Turn::Oldest if tick.more() => {
                self.turn = Turn::Tenants;
                self.drained_until = tick.last_due_at.or(self.drained_until);
                return Duration::ZERO;
            }
            Turn::Oldest => self.untenanted_until = None,
        }
        if self.drained_until.take().is_some() {
            // Once more from the start, for what others held locked meanwhile.
            return Duration::ZERO;
        }
        self.expected = outlook.next_instant.unwrap_or(DateTime::<Utc>::MAX_UTC);
        self.low_water = outlook
            .next_instant
            .unwrap_or(scope.now)
            .max(self.low_water);
        match staged {
            Some(staged) if staged.dispatched > 0 => return Duration::ZERO,
            // All of them, but for those that have to be decided at the instant.
            Some(_) => self.staging = None,
            None if outlook.herd == HERD => {
                self.staging = outlook.next_instant;
                return Duration::ZERO;
            }
            None => {}
        }
        self.herd_checked = outlook
            .next_instant
            .filter(|next| is_near(*next, scope.now));
        self.sleep(scope.now, outlook)
    }

    fn sleep(&mut self, now: DateTime<Utc>, outlook: &Outlook) -> Duration {
        let clock = time::now();
        let until = |instant: DateTime<Utc>| (instant - clock).to_std().unwrap_or(Duration::ZERO);
        let mut sleep = guc::check_interval();
        if let Some(available) = outlook.next_available {
            sleep = sleep.min(until(available));
        }
        if let Some(next) = outlook.next_instant {
            let wait = match guc::lookahead() {
                // A little earlier, to see whether there is a herd.
                Some(lookahead) if self.herd_checked != Some(next) => {
                    until(next).saturating_sub(lookahead)
                }
                _ => until(next),
            };
            // Due in the meantime: go on at once, unless this batch already found it locked.
            let locked_wait = match next <= now {
                true => Some(self.locked_wait),
                false => None,
            };
            self.locked_wait = match locked_wait {
                Some(wait) => (wait * 2).min(LOCKED_ELSEWHERE.1),
                None => LOCKED_ELSEWHERE.0,
            };
            sleep = sleep.min(locked_wait.unwrap_or(wait));
        }
        sleep
    }

    fn count(&mut self, tick: &Tick) {
        if tick.last_due_at.is_none() {
            return;
        }
        stats::count_tick(tick);
        for (action, reason) in &tick.ended {
            match reason {
                EndReason::Exhausted => {
                    log!("pg_recur dispatcher: action ended action={action} reason=exhausted")
                }
                reason => warning!(
                    "pg_recur dispatcher: action ended action={action} reason={}",
                    reason.name()
                ),
            }
        }
        debug1!(
            "pg_recur dispatcher: batch dispatched={} skipped={} ended={} failed={} more={}",
            tick.dispatched,
            tick.skipped,
            tick.ended.len(),
            tick.failed,
            tick.more()
        );
        let summary = &mut self.summary;
        summary.batches += 1;
        summary.dispatched += tick.dispatched;
        summary.skipped += tick.skipped;
        summary.ended += tick.ended.len();
        summary.failed += tick.failed;
    }

    fn summarize(&mut self, database: &str) {
        let summary = &self.summary;
        if summary.since.elapsed() < SUMMARY_EVERY {
            return;
        }
        if summary.batches > 0 {
            log!(
                "pg_recur dispatcher: summary database={database:?} seconds={} batches={} dispatched={} skipped={} ended={} failed={}",
                summary.since.elapsed().as_secs(),
                summary.batches,
                summary.dispatched,
                summary.skipped,
                summary.ended,
                summary.failed
            );
        }
        self.summary = Summary::new();
    }
}

fn or_raise<T>(outcome: SpiResult<T>) -> T {
    outcome.unwrap_or_else(|error| pgrx::error!("pg_recur: {error}"))
}

/// Tells of what has become available, if anything has; returns when the next dispatch does.
fn announce_and_look(
    after: DateTime<Utc>,
    until: DateTime<Utc>,
) -> SpiResult<Option<DateTime<Utc>>> {
    let next = store::next_available(after)?;
    if next.is_none_or(|next| next > until) {
        return Ok(next);
    }
    announce_later_ones(after, until)?;
    store::next_available(until)
}

/// Tells of what has become available. A channel that can't be told keeps nothing from being dispatched.
fn announce_later_ones(after: DateTime<Utc>, until: DateTime<Utc>) -> SpiResult<()> {
    match subtransaction::attempt(|| announce::newly_available(after, until)) {
        Ok(outcome) => outcome,
        Err(failure) => {
            warning!(
                "pg_recur dispatcher: announcement failed sqlstate={} message={:?}",
                failure.sqlstate,
                failure.message
            );
            Ok(())
        }
    }
}

/// Is the instant to come, and near enough to be staged for?
fn is_near(instant: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    let Some(lookahead) = guc::lookahead() else {
        return false;
    };
    (instant - now)
        .to_std()
        .is_ok_and(|distance| !distance.is_zero() && distance <= lookahead)
}
