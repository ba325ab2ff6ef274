//! What a dispatcher knows of herds: so many actions due at one instant that their dispatches are staged well ahead of
//! it, because they take a while.

use crate::dispatch::batch::{Ahead, Batch};
use crate::dispatch::herd;
use crate::dispatch::store::DueCursor;
use crate::runtime::settings;
use chrono::{DateTime, TimeDelta, Utc};

type Instant = DateTime<Utc>;

/// So many actions are a herd.
const HERD: i64 = 1_000;
/// Looking for them takes a fraction of a millisecond. `recur.lookahead` is longer, so that none comes too near
/// meanwhile.
const LOOK_EVERY: TimeDelta = TimeDelta::milliseconds(500);
/// A batch that could not be locked in time is tried again so much later.
const TRY_AGAIN_AFTER: TimeDelta = TimeDelta::milliseconds(100);

pub struct Herds {
    /// The next one, as far as is known.
    next: Option<Instant>,
    /// How far it has been gone through. Those that have to be decided at the instant stay where they are, and a batch
    /// that began with them would never come to the others.
    reached: Option<DueCursor>,
    /// It is not tried before.
    put_off_until: Instant,
    /// How many have been left to the instant so far.
    left: i64,
    /// When they were last looked for.
    looked_for: Instant,
    /// A timer has been set since.
    is_asked_for: bool,
    /// Those that have been gone through, and how many were left to the instant.
    passed: Vec<(Instant, i64)>,
}

/// Where to look for herds.
pub struct Stretch {
    after: Instant,
    until: Instant,
    /// One that has been gone through is one again when so many have joined those that were left.
    passed: Vec<(Instant, i64)>,
}

impl Stretch {
    /// The first herd in it, if the first timer of all is due then.
    pub fn find(&self, first: Option<Instant>) -> Option<Instant> {
        match first {
            Some(first) if first <= self.until => {
                herd::find(self.after, self.until, HERD, &self.passed)
            }
            // Nothing at all is due so soon.
            _ => None,
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
            left: 0,
            looked_for: Instant::UNIX_EPOCH,
            is_asked_for: true,
            passed: Vec::new(),
        }
    }

    /// A timer has been set. It may belong to a herd that comes before the one that is known, which goes on being
    /// staged meanwhile.
    pub fn look_again(&mut self) {
        self.is_asked_for = true;
    }

    /// Where they are to be looked for in this turn: so far ahead that none comes too near before the next time.
    pub fn to_look_for(&self, now: Instant) -> Option<Stretch> {
        let lookahead = settings::lookahead()?;
        let is_time = now - self.looked_for >= LOOK_EVERY;
        (is_time && (self.is_asked_for || self.next.is_none())).then(|| Stretch {
            after: now,
            until: super::after(now, lookahead + settings::check_interval()),
            passed: self.passed.clone(),
        })
    }

    /// They have been looked for.
    pub fn note_found(&mut self, found: Option<Instant>, now: Instant) {
        self.looked_for = now;
        self.is_asked_for = false;
        // The nearest first. What is left of the one that is being staged may be too few to be found again.
        self.next = self.next.into_iter().chain(found).min();
    }

    /// What is to be staged of them now.
    pub fn ahead(&mut self, now: Instant) -> Option<Ahead> {
        // What is left of a herd whose instant has come is due like anything else.
        self.next = self.next.filter(|instant| *instant > now);
        self.passed.retain(|(instant, _)| *instant > now);
        let (next, stage_at) = (self.next?, self.stage_at()?);
        if stage_at > now {
            return None;
        }
        let after = match self.reached.filter(|reached| reached.due_at == next) {
            Some(reached) => reached,
            None => {
                self.left = 0;
                DueCursor::before(next)
            }
        };
        Some(Ahead { after, until: next })
    }

    /// When there is something to do for them.
    pub fn next_turn(&self) -> Option<Instant> {
        let look_at = (self.is_asked_for && settings::lookahead().is_some())
            .then(|| self.looked_for + LOOK_EVERY);
        self.stage_at().into_iter().chain(look_at).min()
    }

    fn stage_at(&self) -> Option<Instant> {
        let lookahead = TimeDelta::from_std(settings::lookahead()?).unwrap_or_default();
        Some((self.next? - lookahead).max(self.put_off_until))
    }

    /// A batch of the herd of this instant has been staged.
    pub fn note_staged(&mut self, instant: Instant, batch: &Batch, now: Instant) {
        if batch.timed_out {
            self.put_off_until = now + TRY_AGAIN_AFTER;
            return;
        }
        self.left += batch.left as i64;
        self.reached = batch.last.filter(|_| batch.is_full);
        if !batch.is_full {
            self.passed.retain(|(passed, _)| *passed != instant);
            self.passed.push((instant, self.left));
            self.next = self.next.filter(|next| *next != instant);
            // Another one may follow it.
            self.look_again();
            self.looked_for = Instant::UNIX_EPOCH;
        }
    }

    /// Is this the instant of the herd that is being staged, or will be?
    pub fn is_next(&self, instant: Instant) -> bool {
        self.next == Some(instant)
    }

    /// Has the herd of this instant been gone through?
    pub fn is_passed(&self, instant: Instant) -> bool {
        self.passed.iter().any(|(passed, _)| *passed == instant)
    }
}
