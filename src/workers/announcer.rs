//! Announces dispatches that become available later than they are written: staged, delayed and retried ones. An
//! announcement writes nothing and so waits for no disk: staged dispatches are announced at their instant.

use super::context::{Interruption, WorkerContext};
use crate::queue::announce::{self, Announced};
use crate::runtime::stats;
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::prelude::*;
use recur_core::notify::Group;

const TRY_AGAIN_AFTER: TimeDelta = TimeDelta::seconds(1);

pub struct Announcer {
    /// Dispatches that became available up to here have been announced.
    announced_until: DateTime<Utc>,
    /// No dispatch becomes available before.
    next: DateTime<Utc>,
}

impl Announcer {
    /// An announcer that looks at everything.
    pub fn new() -> Announcer {
        Announcer {
            announced_until: DateTime::UNIX_EPOCH,
            next: DateTime::UNIX_EPOCH,
        }
    }

    /// An announcer that goes on where another one has left off.
    pub fn after(announced_until: DateTime<Utc>) -> Announcer {
        Announcer {
            announced_until,
            next: DateTime::UNIX_EPOCH,
        }
    }

    /// A dispatch becomes available then, or did so before the transaction that wrote it committed.
    pub fn note(&mut self, available_at: DateTime<Utc>) {
        self.next = self.next.min(available_at);
        self.announced_until = self
            .announced_until
            .min(available_at - TimeDelta::microseconds(1));
    }

    /// Looks in the next turn, whatever is known.
    pub fn look_again(&mut self) {
        self.next = DateTime::UNIX_EPOCH;
    }

    pub fn announced_until(&self) -> DateTime<Utc> {
        self.announced_until
    }

    /// When to look next.
    pub fn next(&self) -> DateTime<Utc> {
        self.next
    }

    /// Announces what has become available up to now, in a transaction of its own, or, for a herd, in two. A failed
    /// announcement is repeated from the start a little later; dispatching goes on meanwhile.
    pub fn announce(
        &mut self,
        context: &mut WorkerContext,
        now: DateTime<Utc>,
    ) -> Result<(), Interruption> {
        let after = self.announced_until;
        let mut in_part = None;
        loop {
            let turn = context.transaction(c"pg_recur dispatcher", move || {
                announce_and_look(after, now, in_part)
            });
            let (announced, next) = match turn {
                Ok(done) => done,
                Err(reason @ (Interruption::Exit(_) | Interruption::Held)) => return Err(reason),
                Err(Interruption::Failed(failure)) => {
                    warning!(
                        "pg_recur dispatcher: announcement failed sqlstate={} message={:?}",
                        failure.sqlstate,
                        failure.message
                    );
                    self.next = now + TRY_AGAIN_AFTER;
                    return Ok(());
                }
            };
            // After a start all available dispatches are announced, also those that have been announced before.
            if after > DateTime::UNIX_EPOCH {
                stats::count_lateness(&announced.lateness);
            }
            in_part = announced.in_part;
            if in_part.is_none() {
                self.announced_until = now;
                self.next = next.unwrap_or(DateTime::<Utc>::MAX_UTC);
                return Ok(());
            }
        }
    }
}

/// Announces what has become available, or the rest of it; returns what, and when the next dispatch becomes available.
fn announce_and_look(
    after: DateTime<Utc>,
    until: DateTime<Utc>,
    in_part: Option<Vec<Group>>,
) -> (Announced, Option<DateTime<Utc>>) {
    let announced = match in_part {
        None => announce::newly_available(after, until),
        Some(announced) => announce::rest_of_newly_available(after, until, &announced),
    };
    (announced, announce::next_available(until))
}
