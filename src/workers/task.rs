//! Something that a dispatcher does now and then, between two instants.

use super::backoff::Backoff;
use super::context::{Interruption, WorkerContext};
use crate::pg::time::after;
use crate::pg::transaction::Failure;
use crate::runtime::settings;
use crate::runtime::shared::Exit;
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::prelude::*;
use std::time::Duration;

/// Room enough for a task before the next instant: expiring 1,000 leases takes about 40 ms.
const ROOM: TimeDelta = TimeDelta::milliseconds(100);
/// A task that has waited for room this long takes a small turn, which is over in some milliseconds.
const PUT_OFF_AT_MOST: TimeDelta = TimeDelta::milliseconds(500);
/// No task waits longer, and none longer than `recur.check_interval`, whichever is longer.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How much a task may do in one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Full,
    /// Something is due at any moment.
    Small,
}

/// Something that is to be done now and then.
pub struct Task {
    name: &'static str,
    pub look_at: DateTime<Utc>,
    backoff: Backoff,
}

impl Task {
    pub fn new(name: &'static str) -> Task {
        Task {
            name,
            look_at: DateTime::UNIX_EPOCH,
            backoff: Backoff::new(),
        }
    }

    /// Which turn the task has now, if any.
    pub fn turn(
        &mut self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        busy_at: DateTime<Utc>,
    ) -> Option<Turn> {
        // A clock that was set back must not keep the task waiting for as long.
        if self.look_at > after(now, settings::check_interval().max(LONGEST_WAIT)) {
            self.look_at = now;
        }
        if self.look_at > until.max(now) {
            return None;
        }
        if busy_at - now >= ROOM {
            return Some(Turn::Full);
        }
        if now - self.look_at < PUT_OFF_AT_MOST {
            return None;
        }
        // A backlog has no instant that could be missed.
        let is_backlog = busy_at <= now;
        Some(if is_backlog { Turn::Full } else { Turn::Small })
    }

    /// When to wake for the task: if the dispatcher is busy before there is room, it looks then anyway.
    pub fn wants_turn_at(&self, busy_at: DateTime<Utc>) -> DateTime<Utc> {
        match busy_at - self.look_at >= ROOM {
            true => self.look_at,
            false => self.look_at + PUT_OFF_AT_MOST,
        }
    }

    /// Notes what came of a turn, and when to look again. A failure is logged, and tried again a little later.
    pub fn note(
        &mut self,
        context: &WorkerContext,
        outcome: Result<DateTime<Utc>, Interruption>,
        now: DateTime<Utc>,
    ) -> Result<(), Exit> {
        match outcome {
            Ok(look_at) => {
                self.backoff.reset();
                self.look_at = look_at;
            }
            Err(Interruption::Exit(exit)) => return Err(exit),
            Err(Interruption::Held) => self.look_at = after(now, settings::check_interval()),
            Err(Interruption::Failed(failure)) => {
                let pause = self.backoff.pause();
                warn_of(self.name, context, &failure, pause);
                self.look_at = after(now, pause);
            }
        }
        Ok(())
    }
}

/// Logs that some work has failed, and is tried again.
pub fn warn_of(work: &str, context: &WorkerContext, failure: &Failure, retry_in: Duration) {
    warning!(
        "pg_recur {}: {work} failed database={:?} sqlstate={} retry_in={retry_in:?} message={:?}",
        context.kind().name(),
        context.database_name,
        failure.sqlstate,
        failure.message
    );
}
