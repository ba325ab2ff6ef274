//! A dispatcher of one database: sleeps until the next timer is due, and dispatches what is due. The first one of a
//! database has some more to do between instants: see upkeep.rs.

use super::announcer::Announcer;
use super::context::{Interruption, WorkerContext};
use super::herds::Herds;
use super::summary::Summary;
use crate::dispatch::batch::{self, Ahead, Batch, Scope, Timers};
use crate::dispatch::duplicates::KeyLocks;
use crate::dispatch::store::{self, DueCursor};
use crate::pg::index_scan::LowerBound;
use crate::pg::time::{self, after};
use crate::queue::announce;
use crate::runtime::shared::Wakeup;
use crate::runtime::{settings, wakeup};
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::prelude::*;
use std::time::{Duration, Instant};

/// Dispatches that belong to no herd are staged just early enough to be on disk at their instant: then only the
/// announcement remains. As soon as a timer is due within the first span, all that are due within the second are
/// staged.
const STAGED_AHEAD: (TimeDelta, TimeDelta) =
    (TimeDelta::milliseconds(50), TimeDelta::milliseconds(100));
/// The dispatcher looks at all timers this often, whatever it knows: a second safety net.
const LOOK_EVERYWHERE_EVERY: Duration = Duration::from_secs(60);
/// When to look again at timers that are due but locked elsewhere: soon at first, then less often. The other
/// transaction's commit may wake the dispatcher, its rollback does not.
const LOCKED_ELSEWHERE: (Duration, Duration) =
    (Duration::from_millis(2), Duration::from_millis(100));

/// `-infinity` stands for all instants that chrono can't hold.
pub fn instant(micros: pg_sys::TimestampTz) -> DateTime<Utc> {
    time::from_micros(micros).unwrap_or(DateTime::UNIX_EPOCH)
}

pub struct Dispatcher {
    number: u8,
    /// No timer is due earlier. A scan from here skips the dead index entries of timers that were advanced.
    low_water: DateTime<Utc>,
    /// When the next timer is due, as known before the last sleep. Timers that are due already but locked elsewhere do
    /// not count: they must not delay the staging of others.
    expected: DateTime<Utc>,
    /// While a backlog is drained: the last due instant that was reached.
    drained_until: Option<DateTime<Utc>>,
    looked_everywhere: Instant,
    herds: Herds,
    /// Timers that are due up to here have been staged, except for those that are decided at their instant.
    staged_until: DateTime<Utc>,
    /// How far staging has come beyond `staged_until`, if one batch was not enough.
    staged_to: Option<DueCursor>,
    /// When to look at the timers again, unless a wake-up comes first.
    look_at: DateTime<Utc>,
    /// When to look if no timer is known to become due.
    safety_net: DateTime<Utc>,
    pub announcer: Announcer,
    /// How long to wait for rows that are locked elsewhere.
    locked_wait: Duration,
    pub summary: Summary,
}

/// What a turn stages.
#[derive(Clone, Copy)]
enum Staging {
    /// Timers that are due in a moment.
    Near(Ahead),
    Herd(Ahead),
}

impl Staging {
    fn ahead(self) -> Ahead {
        let (Staging::Near(ahead) | Staging::Herd(ahead)) = self;
        ahead
    }
}

/// What a turn found out about timers that are not due yet.
#[derive(Default)]
struct Outlook {
    /// When the first timer is due. An instant in the past means that another transaction holds the timer's lock.
    next_instant: Option<DateTime<Utc>>,
    /// When the first timer becomes due that is not due yet.
    coming: Option<DateTime<Utc>>,
    /// The next herd, if herds were looked for.
    herd: Option<Option<DateTime<Utc>>>,
}

/// What one transaction of the dispatcher did.
struct Turn {
    due: Batch,
    staged: Option<Batch>,
    /// When dispatches become available that the announcer does not know of.
    available: [Option<DateTime<Utc>>; 2],
    outlook: Outlook,
}

impl Dispatcher {
    pub fn new(number: u8) -> Dispatcher {
        Dispatcher {
            number,
            low_water: DateTime::UNIX_EPOCH,
            expected: DateTime::UNIX_EPOCH,
            drained_until: None,
            looked_everywhere: Instant::now(),
            herds: Herds::new(),
            staged_until: DateTime::UNIX_EPOCH,
            staged_to: None,
            look_at: DateTime::UNIX_EPOCH,
            safety_net: DateTime::UNIX_EPOCH,
            announcer: Announcer::new(),
            locked_wait: LOCKED_ELSEWHERE.0,
            summary: Summary::new(),
        }
    }

    /// Announces what has become available, then runs one batch in one transaction.
    pub fn run_once(
        &mut self,
        context: &mut WorkerContext,
        wakeup: Wakeup,
        now: DateTime<Utc>,
    ) -> Result<(), Interruption> {
        self.take_note(wakeup);
        self.notice_clock(now);
        // First, because an announcement is quick and consumers wait for it.
        if self.announces() && self.announcer.next() <= now {
            self.announcer.announce(context, now)?;
        }
        if self.look_at > now {
            return Ok(());
        }
        let staging = self.staging(now);
        let turn = self.run_turn(context, staging, now)?;
        for available_at in turn.available.into_iter().flatten() {
            self.announcer.note(available_at);
        }
        self.summary.count(&turn.due);
        if let Some(staged) = &turn.staged {
            self.summary.count(staged);
        }
        self.look_at = self.plan(&turn, staging, now);
        Ok(())
    }

    /// Looks at the timers in the next turn.
    pub fn look_again(&mut self) {
        self.look_at = DateTime::UNIX_EPOCH;
    }

    /// After a failure it is unknown how far a batch came: look at all timers. Only the announcer's knowledge still
    /// holds.
    pub fn start_over(&mut self) {
        let failed = std::mem::replace(self, Dispatcher::new(self.number));
        self.announcer = failed.announcer;
        self.announcer.look_again();
    }

    /// Will the next turn look only because of the safety net?
    pub fn is_due_for_safety(&self, now: DateTime<Utc>) -> bool {
        self.look_at == self.safety_net && self.look_at <= now
    }

    fn run_turn(
        &self,
        context: &mut WorkerContext,
        staging: Option<Staging>,
        now: DateTime<Utc>,
    ) -> Result<Turn, Interruption> {
        // The safety net covers announcements, too.
        let announced_until = (self.announces() && self.look_at == self.safety_net)
            .then(|| self.announcer.announced_until());
        let herd_within = self.herds.to_look_for(now);
        let announces = self.announces();
        let (low_water, from) = (self.low_water, self.drained_until.unwrap_or(self.low_water));
        let may_be_due = self.drained_until.is_some() || self.expected <= now;
        context.transaction(c"pg_recur dispatcher", move || {
            // Woken by the safety net, or by a change: a look at the index shows whether anything is due.
            let next_instant = || store::next_instant(LowerBound::At(low_water));
            let peeked = (!may_be_due).then(next_instant);
            let nothing_is_due = peeked.is_some_and(|next| next.is_none_or(|next| next > now));
            let keys = KeyLocks::new();
            let due = match nothing_is_due {
                true => Batch::default(),
                false => batch::run(&Scope {
                    now,
                    timers: Timers::Due { from },
                    keys: &keys,
                }),
            };
            let staged = staging.map(|staging| {
                batch::run(&Scope {
                    now,
                    timers: Timers::Ahead(staging.ahead()),
                    keys: &keys,
                })
            });
            let later = due.available_later.into_iter();
            let later = later
                .chain(staged.as_ref().and_then(|batch| batch.available_later))
                .min();
            let forgotten = announced_until.and_then(announce::next_available);
            if let (false, Some(later)) = (announces, later) {
                wakeup::available_on_commit(time::to_micros(later));
            }
            let outlook = match due.has_more() {
                // While more timers may be due, later ones do not matter.
                true => Outlook::default(),
                false => {
                    let next_instant = match (peeked, &staged) {
                        (Some(next), None) if nothing_is_due => next,
                        _ => next_instant(),
                    };
                    let coming = match next_instant {
                        Some(next) if next <= now => store::next_instant(LowerBound::After(now)),
                        next => next,
                    };
                    Outlook {
                        next_instant,
                        coming,
                        herd: herd_within.map(|stretch| stretch.find(next_instant)),
                    }
                }
            };
            Turn {
                due,
                staged,
                available: [later, forgotten],
                outlook,
            }
        })
    }

    fn announces(&self) -> bool {
        self.number == 0
    }

    /// A clock that was set back must not keep the dispatcher asleep for as long.
    fn notice_clock(&mut self, now: DateTime<Utc>) {
        if self.look_at > after(now, settings::check_interval()) {
            self.look_at = DateTime::UNIX_EPOCH;
            self.staged_until = DateTime::UNIX_EPOCH;
            self.staged_to = None;
            self.herds = Herds::new();
            self.announcer.look_again();
        }
    }

    /// A session has set a timer, or a dispatch to become available.
    fn take_note(&mut self, wakeup: Wakeup) {
        if self.looked_everywhere.elapsed() > LOOK_EVERYWHERE_EVERY {
            self.looked_everywhere = Instant::now();
            self.low_water = DateTime::UNIX_EPOCH;
            self.look_at = DateTime::UNIX_EPOCH;
            self.announcer.look_again();
        }
        if let Some(due_at) = wakeup.due_at.map(instant) {
            self.low_water = self.low_water.min(due_at);
            self.look_at = DateTime::UNIX_EPOCH;
            self.drained_until = None;
            self.herds.look_again();
            // Earlier timers are unchanged.
            self.staged_until = self.staged_until.min(due_at - TimeDelta::microseconds(1));
            self.staged_to = self.staged_to.filter(|cursor| cursor.due_at < due_at);
        }
        if let Some(available_at) = wakeup.available_at {
            self.announcer.note(instant(available_at));
        }
    }

    /// What to stage in this turn.
    fn staging(&mut self, now: DateTime<Utc>) -> Option<Staging> {
        settings::lookahead()?;
        let herd = self.herds.ahead(now);
        let next = self.expected;
        let is_near = next > now && next <= now + STAGED_AHEAD.0 && next > self.staged_until;
        if is_near && !self.herds.is_next(next) {
            let staged_to = self.staged_to.filter(|cursor| cursor.due_at >= next);
            return Some(Staging::Near(Ahead {
                after: staged_to.unwrap_or(DueCursor::before(next)),
                until: now + STAGED_AHEAD.1,
            }));
        }
        herd.map(Staging::Herd)
    }

    /// When to look again.
    fn plan(&mut self, turn: &Turn, staging: Option<Staging>, now: DateTime<Utc>) -> DateTime<Utc> {
        let at_once = DateTime::UNIX_EPOCH;
        if let Some(found) = turn.outlook.herd {
            self.herds.note_found(found, now);
        }
        let staged = staging.zip(turn.staged.as_ref());
        let stages_more = staged.is_some_and(|(staging, batch)| self.note_staged(staging, batch));
        if turn.due.has_more() {
            self.drained_until = turn.due.last_due_at().or(self.drained_until);
            return at_once;
        }
        if self.drained_until.take().is_some() {
            // Once more from the low-water mark, for timers that were locked elsewhere meanwhile.
            return at_once;
        }
        self.expected = turn.outlook.coming.unwrap_or(DateTime::<Utc>::MAX_UTC);
        self.low_water = turn.outlook.next_instant.unwrap_or(now).max(self.low_water);
        if stages_more {
            return at_once;
        }
        self.next_look(now, &turn.outlook)
    }

    /// True if there may be more to stage at once.
    fn note_staged(&mut self, staging: Staging, batch: &Batch) -> bool {
        match staging {
            Staging::Herd(ahead) => {
                self.herds.note_staged(ahead.until, batch, time::now());
                !batch.timed_out
            }
            Staging::Near(ahead) => {
                // Timers that are known to be decided at their instant are not scanned again just before it.
                let is_futile = batch.dispatched == 0 && self.herds.is_passed(ahead.after.due_at);
                let goes_on = batch.is_full && !is_futile;
                self.staged_to = batch.last.filter(|_| goes_on);
                if !goes_on {
                    self.staged_until = ahead.until;
                }
                goes_on
            }
        }
    }

    fn next_look(&mut self, now: DateTime<Utc>, outlook: &Outlook) -> DateTime<Utc> {
        self.safety_net = after(now, settings::check_interval());
        if let Some(turn) = self.herds.next_turn() {
            self.safety_net = self.safety_net.min(turn);
        }
        let mut look_at = self.safety_net;
        if let Some(coming) = outlook.coming {
            look_at = look_at.min(match settings::lookahead() {
                Some(_) if coming > self.staged_until => coming - STAGED_AHEAD.0,
                _ => coming,
            });
        }
        // Still due after the batch: locked elsewhere.
        if outlook.next_instant.is_some_and(|next| next <= now) {
            look_at = look_at.min(after(time::now(), self.locked_wait));
            self.locked_wait = (self.locked_wait * 2).min(LOCKED_ELSEWHERE.1);
        } else {
            self.locked_wait = LOCKED_ELSEWHERE.0;
        }
        look_at
    }

    /// When to look at the timers, or to announce.
    pub fn next(&self) -> DateTime<Utc> {
        match self.announces() {
            true => self.look_at.min(self.announcer.next()),
            false => self.look_at,
        }
    }

    /// When something is due, as far as is known.
    pub fn next_instant(&self) -> DateTime<Utc> {
        let look_at = match self.look_at == self.safety_net {
            true => self.expected,
            false => self.look_at,
        };
        look_at.min(self.announcer.next())
    }

    pub fn sleep_until(&self, next: DateTime<Utc>) -> Duration {
        // By the wall clock, which may be set during the sleep.
        let sleep = (next - time::now()).to_std().unwrap_or(Duration::ZERO);
        let sleep = sleep.min(settings::check_interval());
        match next == self.safety_net {
            // No timer is due at the safety net's instant: whole milliseconds save a second wake-up.
            true => Duration::from_millis(sleep.as_micros().div_ceil(1000) as u64),
            false => sleep,
        }
    }
}
