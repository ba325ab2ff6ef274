//! What a dispatcher knows of herds: so many actions due at one instant that their dispatches are staged well ahead of it,
//! because they take a while.

use crate::dispatch::store::{self, Position};
use crate::dispatch::tick::{Ahead, Tick};
use crate::guc;
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::spi::SpiResult;

type Instant = DateTime<Utc>;

/// So many actions are a herd.
const HERD: i64 = 1_000;
/// Looking for them takes a fraction of a millisecond.
const LOOK_EVERY: TimeDelta = TimeDelta::milliseconds(500);
/// A batch that could not be locked in time is tried again so much later.
const TRY_AGAIN_AFTER: TimeDelta = TimeDelta::milliseconds(100);

pub struct Herds {
    /// The next one, as far as is known.
    next: Option<Instant>,
    /// How far it has been gone through. Those that have to be decided at the instant stay where they are, and a batch that
    /// began with them would never come to the others.
    reached: Option<Position>,
    /// It is not tried before.
    put_off_until: Instant,
    /// When they were last looked for.
    looked_for: Instant,
    /// The one that was gone through last: what is left of it has to be decided at the instant.
    passed: Instant,
}

/// Where to look for herds.
#[derive(Clone, Copy)]
pub struct Stretch {
    after: Instant,
    until: Instant,
}

impl Stretch {
    /// The first herd in it, if the first timer of all is due then.
    pub fn find(self, first: Option<Instant>) -> SpiResult<Option<Instant>> {
        match first {
            Some(first) if first <= self.until => store::find_herd(self.after, self.until, HERD),
            // Nothing at all is due so soon.
            _ => Ok(None),
        }
    }
}

impl Herds {
    /// One that knows nothing.
    pub fn new() -> Herds {
        Herds {
            next: None,
            reached: None,
            put_off_until: Instant::UNIX_EPOCH,
            looked_for: Instant::UNIX_EPOCH,
            passed: Instant::UNIX_EPOCH,
        }
    }

    /// A timer has been set. It may belong to a herd that comes before the one that is known, which goes on being staged
    /// meanwhile.
    pub fn look_again(&mut self) {
        self.looked_for = Instant::UNIX_EPOCH;
        self.passed = Instant::UNIX_EPOCH;
    }

    /// Where they are to be looked for in this turn: so far ahead that none comes too near before the next time.
    pub fn to_look_for(&self, now: Instant) -> Option<Stretch> {
        let lookahead = guc::lookahead()?;
        let is_asked_for = self.looked_for == Instant::UNIX_EPOCH;
        let is_time = is_asked_for || self.next.is_none() && now - self.looked_for >= LOOK_EVERY;
        is_time.then(|| Stretch {
            after: now.max(self.passed),
            until: super::after(now, lookahead + guc::check_interval()),
        })
    }

    /// They have been looked for.
    pub fn note_found(&mut self, found: Option<Instant>, now: Instant) {
        self.looked_for = now;
        // The nearest first. What is left of the one that is being staged may be too few to be found again.
        self.next = self.next.into_iter().chain(found).min();
    }

    /// What is to be staged of them now.
    pub fn ahead(&mut self, now: Instant) -> Option<Ahead> {
        // What is left of a herd whose instant has come is due like anything else.
        self.next = self.next.filter(|instant| *instant > now);
        let (next, stage_at) = (self.next?, self.stage_at()?);
        let reached = self.reached.filter(|reached| reached.due_at == next);
        (stage_at <= now).then(|| Ahead {
            after: reached.unwrap_or(Position::before(next)),
            until: next,
        })
    }

    /// When the next one is to be staged.
    pub fn stage_at(&self) -> Option<Instant> {
        let lookahead = TimeDelta::from_std(guc::lookahead()?).unwrap_or_default();
        Some((self.next? - lookahead).max(self.put_off_until))
    }

    /// A batch of the herd of this instant has been staged.
    pub fn note_staged(&mut self, instant: Instant, batch: &Tick, now: Instant) {
        if batch.timed_out {
            self.put_off_until = now + TRY_AGAIN_AFTER;
        } else if batch.full {
            self.reached = batch.last;
        } else {
            self.passed = instant;
            self.next = self.next.filter(|next| *next != instant);
            // Another one may follow it.
            self.looked_for = Instant::UNIX_EPOCH;
        }
    }

    /// Is this the instant of the herd that is being staged, or will be?
    pub fn is_next(&self, instant: Instant) -> bool {
        self.next == Some(instant)
    }

    /// Has the herd of this instant been gone through?
    pub fn is_passed(&self, instant: Instant) -> bool {
        self.passed == instant
    }
}
