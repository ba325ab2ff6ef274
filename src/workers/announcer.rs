//! Tells of dispatches that become available later than they are written: staged ones, retries, delayed ones. It writes
//! nothing, so it waits for no disk: what is staged is heard of at its instant.

use super::worker::{Departs, Post};
use crate::dispatch::announce::{self, Told};
use crate::dispatch::later::{self, AnnouncedGroup};
use crate::stats;
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::prelude::*;
use pgrx::spi::SpiResult;

const TRY_AGAIN_AFTER: TimeDelta = TimeDelta::seconds(1);

pub struct Announcer {
    /// Up to here, what became available has been announced.
    announced_until: DateTime<Utc>,
    /// Nothing becomes available before.
    next: DateTime<Utc>,
}

impl Announcer {
    /// One that knows nothing, and looks at everything.
    pub fn new() -> Announcer {
        Announcer {
            announced_until: DateTime::UNIX_EPOCH,
            next: DateTime::UNIX_EPOCH,
        }
    }

    /// A dispatch becomes available then, or has become so while the transaction that wrote it was under way.
    pub fn note(&mut self, available_at: DateTime<Utc>) {
        self.next = self.next.min(available_at);
        self.announced_until = self
            .announced_until
            .min(available_at - TimeDelta::microseconds(1));
    }

    /// Whatever it believes, it shall look.
    pub fn look_again(&mut self) {
        self.next = DateTime::UNIX_EPOCH;
    }

    pub fn announced_until(&self) -> DateTime<Utc> {
        self.announced_until
    }

    /// When it has to look next.
    pub fn next(&self) -> DateTime<Utc> {
        self.next
    }

    /// Tells of what has become available up to now, in a transaction of its own, or, of a herd, in two. If that fails, it is tried
    /// again a little later, from the start: it keeps nothing from being dispatched.
    pub fn announce(&mut self, post: &mut Post, now: DateTime<Utc>) -> Result<(), Departs> {
        let after = self.announced_until;
        let mut in_part = None;
        loop {
            let turn = post.transaction(c"pg_recur dispatcher", move || {
                announce_and_look(after, now, in_part)
                    .unwrap_or_else(|error| pgrx::error!("pg_recur: {error}"))
            });
            let (told, next) = match turn {
                Ok(done) => done?,
                Err(failure) => {
                    warning!(
                        "pg_recur dispatcher: announcement failed sqlstate={} message={:?}",
                        failure.sqlstate,
                        failure.message
                    );
                    self.next = now + TRY_AGAIN_AFTER;
                    return Ok(());
                }
            };
            // One that has just begun tells of everything that lies there, announced before or not.
            if after > DateTime::UNIX_EPOCH {
                stats::count_lateness(&told.lateness);
            }
            in_part = told.in_part;
            if in_part.is_none() {
                self.announced_until = now;
                self.next = next.unwrap_or(DateTime::<Utc>::MAX_UTC);
                return Ok(());
            }
        }
    }
}

/// Tells of what has become available, if anything has, or of the rest of it; returns what, and when the next dispatch does.
fn announce_and_look(
    after: DateTime<Utc>,
    until: DateTime<Utc>,
    in_part: Option<Vec<AnnouncedGroup>>,
) -> SpiResult<(Told, Option<DateTime<Utc>>)> {
    let told = match in_part {
        None => announce::newly_available(after, until)?,
        Some(told) => announce::rest_of_newly_available(after, until, &told)?,
    };
    Ok((told, later::next_available(until)))
}
