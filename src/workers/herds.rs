//! What a dispatcher knows of herds. The dispatches of a herd take a while to write, so they are staged well ahead of
//! their instant.

use crate::dispatch::batch::{Ahead, Batch};
use crate::dispatch::herd;
use crate::dispatch::store::DueCursor;
use crate::pg::time::after;
use crate::runtime::settings;
use chrono::{DateTime, TimeDelta, Utc};

type Instant = DateTime<Utc>;

/// The smallest number of timers, due at one instant, that is a herd.
const HERD: i64 = 1_000;
/// How often to look for herds, which takes a fraction of a millisecond. The interval is shorter than
/// `recur.lookahead`, so that every herd is found in time.
const LOOK_EVERY: TimeDelta = TimeDelta::milliseconds(500);
/// When to repeat a batch that could not be locked in time.
const TRY_AGAIN_AFTER: TimeDelta = TimeDelta::milliseconds(100);

pub struct Herds {
    /// The instant of the next known herd.
    next: Option<Instant>,
    /// How far the next herd has been processed. Timers that must be decided at the instant stay where they are: a
    /// batch that started from the beginning would lock them again and again, and never reach the others.
    reached: Option<DueCursor>,
    /// The next herd is not staged before this instant.
    put_off_until: Instant,
    /// How many timers of the next herd have been left to the instant so far.
    left: i64,
    /// When the dispatcher last looked for herds.
    looked_for: Instant,
    /// Has a timer been set since?
    is_asked_for: bool,
    /// Herds that have been processed, and how many timers of each were left to the instant.
    passed: Vec<(Instant, i64)>,
}

/// Where to look for herds.
pub struct Stretch {
    after: Instant,
    until: Instant,
    /// Processed herds, with the number of timers that were left. Another [`HERD`] of timers makes a new herd of them.
    passed: Vec<(Instant, i64)>,
}

impl Stretch {
    /// The first herd of the stretch. `first` is when the first timer of all is due.
    pub fn find(&self, first: Option<Instant>) -> Option<Instant> {
        match first {
            Some(first) if first <= self.until => {
                herd::find(self.after, self.until, HERD, &self.passed)
            }
            // No timer is due within the stretch.
            _ => None,
        }
    }
}

impl Herds {
    /// Without any knowledge.
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

    /// A timer has been set, and may belong to a herd before the known one. Staging of the known herd goes on
    /// meanwhile.
    pub fn look_again(&mut self) {
        self.is_asked_for = true;
    }

    /// Where to look for herds in this turn: far enough ahead that the next look is in time for those beyond.
    pub fn to_look_for(&self, now: Instant) -> Option<Stretch> {
        let lookahead = settings::lookahead()?;
        let is_time = now - self.looked_for >= LOOK_EVERY;
        (is_time && (self.is_asked_for || self.next.is_none())).then(|| Stretch {
            after: now,
            until: after(now, lookahead + settings::check_interval()),
            passed: self.passed.clone(),
        })
    }

    /// Notes the result of a look for herds.
    pub fn note_found(&mut self, found: Option<Instant>, now: Instant) {
        self.looked_for = now;
        self.is_asked_for = false;
        // The nearest first. The known herd is kept: its remaining timers may be too few to be found again.
        self.next = self.next.into_iter().chain(found).min();
    }

    /// What to stage now of the next herd.
    pub fn ahead(&mut self, now: Instant) -> Option<Ahead> {
        // The remaining timers of a herd whose instant has come are due like any others.
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

    /// When to look for herds, or to stage one.
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
            // Another herd may follow.
            self.look_again();
            self.looked_for = Instant::UNIX_EPOCH;
        }
    }

    /// Is this the instant of the herd that is being staged, or will be?
    pub fn is_next(&self, instant: Instant) -> bool {
        self.next == Some(instant)
    }

    /// Has the herd of this instant been processed?
    pub fn is_passed(&self, instant: Instant) -> bool {
        self.passed.iter().any(|(passed, _)| *passed == instant)
    }
}
