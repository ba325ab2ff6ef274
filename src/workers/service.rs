//! A dispatcher at work: turns of the dispatcher itself and of its upkeep, until there is a reason to leave.

use super::announcer::Announcer;
use super::backoff::Backoff;
use super::context::{Interruption, WorkerContext};
use super::dispatcher::{Dispatcher, instant};
use super::upkeep::Upkeep;
use crate::pg::time::{self, after};
use crate::pg::transaction::Failure;
use crate::pg::{latch, signals};
use crate::runtime::shared::{self, Exit, Handover, WorkerState};
use crate::runtime::{settings, stats};
use chrono::{DateTime, Utc};
use pgrx::prelude::*;
use std::time::{Duration, Instant};

/// A worker that another database waits for stays no longer than this.
const STAYS_AT_MOST: Duration = Duration::from_secs(1);
/// It leaves earlier if nothing is due within this time.
const WORTH_WAITING_FOR: Duration = Duration::from_millis(250);

/// Dispatches until there is a reason to exit.
pub fn serve(context: &mut WorkerContext, number: u8, handover: Option<Handover>) -> Exit {
    let mut service = Service {
        dispatcher: Dispatcher::new(number),
        upkeep: None,
        backoff: Backoff::new(),
        retry: None,
        is_held: false,
        since: Instant::now(),
    };
    if let Some(handover) = &handover {
        let announced_until = instant(handover.announced_until);
        service.dispatcher.announcer = Announcer::after(announced_until);
        context.follows_another();
    }
    if number == 0 {
        let checked_at = handover.map(|handover| instant(handover.checked_at));
        service.upkeep = Some(Upkeep::new(checked_at.unwrap_or(DateTime::UNIX_EPOCH)));
    }
    loop {
        if signals::reload_settings() {
            service.dispatcher.look_again();
            if let Some(upkeep) = &mut service.upkeep {
                upkeep.look_again();
            }
            service.retry = None;
        }
        if context.must_leave() || usize::from(number) >= settings::dispatchers() {
            service.hand_over(context);
            return Exit::Asked;
        }
        context.report(WorkerState::Working, Duration::ZERO, DateTime::UNIX_EPOCH);
        let (state, sleep) = match service.run_once(context) {
            Ok(next) => next,
            Err(exit) => return exit,
        };
        service
            .dispatcher
            .summary
            .log_now_and_then(&context.database_name);
        context.report(state, sleep, service.next_instant());
        if shared::is_asked_to_leave(context.slot) && service.may_leave(state, sleep) {
            service.hand_over(context);
            return match state {
                WorkerState::BackingOff => Exit::AskedAfterError,
                _ => Exit::Asked,
            };
        }
        latch::wait(match shared::has_wakeup(context.slot) {
            true => Duration::ZERO,
            false => sleep,
        });
    }
}

/// A dispatcher at work, with what it does besides.
struct Service {
    dispatcher: Dispatcher,
    /// Of the first dispatcher.
    upkeep: Option<Upkeep>,
    backoff: Backoff,
    /// After a failure: when to try again, unless something changes before.
    retry: Option<Instant>,
    /// Does nothing fire by itself in this database?
    is_held: bool,
    since: Instant,
}

impl Service {
    /// One turn of the dispatcher, then of the upkeep; returns how long to sleep, and in which state.
    fn run_once(&mut self, context: &mut WorkerContext) -> Result<(WorkerState, Duration), Exit> {
        let wakeup = shared::take_wakeup(context.slot);
        let now = time::now();
        let pause = self
            .retry
            .map(|at| at.saturating_duration_since(Instant::now()));
        let has_news = wakeup.due_at.is_some() || wakeup.available_at.is_some();
        let rests = pause.filter(|pause| !pause.is_zero() && !has_news);
        let is_safety_net = self.dispatcher.is_due_for_safety(now);
        let (state, busy_at) = match rests {
            Some(pause) => (WorkerState::BackingOff, after(now, pause)),
            None => match self.dispatcher.run_once(context, wakeup, now) {
                Err(Interruption::Exit(exit)) => return Err(exit),
                Err(Interruption::Held) => {
                    self.is_held = true;
                    return Ok((WorkerState::Sleeping, settings::check_interval()));
                }
                Ok(()) => {
                    self.is_held = false;
                    self.backoff.reset();
                    self.retry = None;
                    (WorkerState::Sleeping, self.dispatcher.next())
                }
                Err(Interruption::Failed(failure)) => {
                    let pause = self.note_failure(context, &failure);
                    (WorkerState::BackingOff, after(now, pause))
                }
            },
        };
        let mut next = busy_at;
        if let Some(upkeep) = &mut self.upkeep {
            if wakeup.has_work {
                upkeep.note_work();
            }
            // One wake-up of the safety net instead of two: what it would wake for next is looked at now.
            let until = match is_safety_net {
                true => after(now, settings::check_interval()),
                false => now,
            };
            upkeep.run_once(context, until, busy_at)?;
            next = next.min(upkeep.next(busy_at));
        }
        Ok((state, self.dispatcher.sleep_until(next)))
    }

    fn note_failure(&mut self, context: &WorkerContext, failure: &Failure) -> Duration {
        let pause = self.backoff.pause();
        self.retry = Some(Instant::now() + pause);
        stats::count_failed_batch();
        warning!(
            "pg_recur dispatcher: batch failed database={:?} sqlstate={} retry_in={pause:?} message={:?}",
            context.database_name,
            failure.sqlstate,
            failure.message
        );
        self.dispatcher.start_over();
        pause
    }

    /// When something is due, as far as is known; the safety net does not count.
    fn next_instant(&self) -> DateTime<Utc> {
        if self.is_held {
            return DateTime::<Utc>::MAX_UTC;
        }
        let upkeep = self.upkeep.as_ref().map(Upkeep::next_instant);
        let next = self.dispatcher.next_instant();
        upkeep.map_or(next, |upkeep| upkeep.min(next))
    }

    /// Another database waits for this worker's slot.
    fn may_leave(&self, state: WorkerState, sleep: Duration) -> bool {
        state == WorkerState::BackingOff
            || sleep > WORTH_WAITING_FOR
            || self.since.elapsed() > STAYS_AT_MOST
    }

    /// The next dispatcher of this database announces from here on.
    fn hand_over(&self, context: &WorkerContext) {
        if let Some(upkeep) = &self.upkeep {
            let handover = Handover {
                announced_until: time::to_micros(self.dispatcher.announcer.announced_until()),
                checked_at: time::to_micros(upkeep.checked_at()),
            };
            shared::hand_over(context.database(), handover);
        }
    }
}
