//! A dispatcher of one database: sleeps until the next instant, dispatches what is due, and so on.

use super::announcer::Announcer;
use super::herds::Herds;
use super::summary::Summary;
use super::worker::{Departs, Post};
use super::{Backoff, after, reload_settings};
use crate::dispatch::later;
use crate::dispatch::store::{self, Position};
use crate::dispatch::tick::{self, Ahead, Order, Scope, Tick};
use crate::pg::{latch, time, transaction};
use crate::shared::{self, Departure, Posted, WorkerState};
use crate::{guc, stats, wake};
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::prelude::*;
use pgrx::spi::SpiResult;
use std::time::{Duration, Instant};

/// Dispatches that are no herd's are staged just so early that they are on disk when their instant comes: what is left to do
/// then is to tell of them. As soon as one is due within the first span, all are staged that are due within the second.
const STAGED_AHEAD: (TimeDelta, TimeDelta) =
    (TimeDelta::milliseconds(50), TimeDelta::milliseconds(100));
/// From time to time the dispatcher looks at all timers, whatever it believes: a safety net below the safety net.
const LOOK_EVERYWHERE_EVERY: Duration = Duration::from_secs(60);
/// Rows that are due but locked by somebody else: his commit may wake us, his rollback does not. We look again soon, and
/// then less and less often.
const LOCKED_ELSEWHERE: (Duration, Duration) =
    (Duration::from_millis(2), Duration::from_millis(100));

/// Dispatches until there is a reason to leave.
pub fn serve(post: &mut Post, number: u8) -> Departure {
    let mut dispatcher = Dispatcher::new(number);
    let mut backoff = Backoff::new();
    loop {
        if reload_settings() {
            dispatcher.look_at = DateTime::UNIX_EPOCH;
        }
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
                // It is not known what came of it: look at everything. What has been announced was.
                let failed = std::mem::replace(&mut dispatcher, Dispatcher::new(number));
                dispatcher.announcer = failed.announcer;
                dispatcher.announcer.look_again();
                (WorkerState::BackingOff, pause)
            }
        };
        dispatcher.summary.tell_now_and_then(&post.database_name);
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
    /// When the next timer is due, as far as was known when it last went to sleep. (Not one that is due already, and locked
    /// elsewhere: that keeps no other from being staged.)
    expected: DateTime<Utc>,
    /// While a backlog is drained, oldest first: how far it has come.
    drained_until: Option<DateTime<Utc>>,
    looked_everywhere: Instant,
    /// While a backlog is drained, all take turns: who has been due longest, the tenants, those without one.
    turn: Turn,
    last_tenant: String,
    /// How far those without a tenant have come.
    untenanted_until: Option<DateTime<Utc>>,
    herds: Herds,
    /// What is due up to here has been staged, but for what has to be decided at its instant.
    staged_until: DateTime<Utc>,
    /// How far it has come with what is due behind that, if one batch was not enough.
    reached: Option<Position>,
    /// When it looks at the timers again, unless somebody sets one before.
    look_at: DateTime<Utc>,
    /// When it would, if it knew of nothing to come.
    safety_net: DateTime<Utc>,
    announcer: Announcer,
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

/// What a turn stages.
#[derive(Clone, Copy)]
enum Staging {
    /// What is due in a moment.
    Near(Ahead),
    Herd(Ahead),
}

/// What a turn found out about the time to come.
#[derive(Default)]
struct Outlook {
    /// When the first timer is due, or was: then it is locked elsewhere.
    next_instant: Option<DateTime<Utc>>,
    /// When the first one is that is not due yet.
    coming: Option<DateTime<Utc>>,
    /// If it was looked for.
    herd: Option<Option<DateTime<Utc>>>,
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
            herds: Herds::new(),
            staged_until: DateTime::UNIX_EPOCH,
            reached: None,
            look_at: DateTime::UNIX_EPOCH,
            safety_net: DateTime::UNIX_EPOCH,
            announcer: Announcer::new(),
            locked_wait: LOCKED_ELSEWHERE.0,
            summary: Summary::new(),
        }
    }

    /// Tells of what has become available, then one batch in one transaction; returns how long to sleep after it.
    fn run_once(
        &mut self,
        post: &mut Post,
        posted: Posted,
        now: DateTime<Utc>,
    ) -> Result<Result<Duration, Departs>, transaction::Failure> {
        self.take_note(posted);
        self.notice_clock(now);
        // First, because it is quick, and others wait for it.
        if self.announces()
            && self.announcer.next() <= now
            && let Err(departs) = self.announcer.announce(post, now)
        {
            return Ok(Err(departs));
        }
        if self.look_at > now {
            return Ok(Ok(self.sleep()));
        }
        // The safety net is one for announcements, too.
        let announced_until = (self.announces() && self.look_at == self.safety_net)
            .then(|| self.announcer.announced_until());
        let scope = self.scope(now);
        let staging = self.staging(now);
        let herd_within = self.herds.to_look_for(now);
        let low_water = self.low_water;
        let announces = self.announces();
        let may_be_due = !matches!(scope.order, Order::Oldest)
            || self.drained_until.is_some()
            || self.expected <= now;
        let turn = post.transaction(c"pg_recur dispatcher", move || {
            // Woken by the safety net, or by a change: a peek is enough to see that there is nothing to do.
            let peeked = (!may_be_due).then(|| store::next_instant(low_water));
            let nothing_due = peeked.is_some_and(|next| next.is_none_or(|next| next > now));
            let tick = match nothing_due {
                true => Tick::default(),
                false => tick::run_batch(&scope),
            };
            let staged = staging.map(|(Staging::Herd(ahead) | Staging::Near(ahead))| {
                tick::run_batch(&Scope {
                    now,
                    from: now,
                    order: Order::Staged(ahead),
                })
            });
            let later = [Some(&tick), staged.as_ref()];
            let later = later
                .into_iter()
                .flatten()
                .filter_map(|tick| tick.available_later);
            let available_later = later.min();
            let forgotten = announced_until.and_then(later::next_available);
            if let (false, Some(later)) = (announces, available_later) {
                wake::available_on_commit(time::to_micros(later));
            }
            let look = || -> SpiResult<Outlook> {
                // While there is more to do, nobody asks what comes after.
                if tick.more() || !matches!(scope.order, Order::Oldest) {
                    return Ok(Outlook::default());
                }
                let next_instant = match (peeked, &staged) {
                    (Some(next), None) if nothing_due => next,
                    _ => store::next_instant(low_water),
                };
                let coming = match next_instant {
                    Some(next) if next <= now => store::next_instant_after(now),
                    next => next,
                };
                let herd = herd_within
                    .map(|stretch| stretch.find(next_instant))
                    .transpose()?;
                Ok(Outlook {
                    next_instant,
                    coming,
                    herd,
                })
            };
            let outlook = or_raise(look());
            let expected = [available_later, forgotten];
            (scope, tick, staged, expected, outlook)
        })?;
        let (scope, tick, staged, expected, outlook) = match turn {
            Ok(turn) => turn,
            Err(departs) => return Ok(Err(departs)),
        };
        for later in expected.into_iter().flatten() {
            self.announcer.note(later);
        }
        self.summary.count(&tick);
        if let Some(staged) = &staged {
            self.summary.count(staged);
        }
        let staged = staging.zip(staged.as_ref());
        self.look_at = self.plan(&scope, &tick, staged, &outlook);
        Ok(Ok(self.sleep()))
    }

    fn announces(&self) -> bool {
        self.number == 0
    }

    /// A clock that was set back must not keep it asleep until it is as late as it was.
    fn notice_clock(&mut self, now: DateTime<Utc>) {
        if self.look_at > after(now, guc::check_interval()) {
            self.look_at = DateTime::UNIX_EPOCH;
            self.staged_until = DateTime::UNIX_EPOCH;
            self.reached = None;
            self.herds = Herds::new();
            self.announcer.look_again();
        }
    }

    /// Somebody has set a timer to an instant before those that are looked at, or a dispatch to become available.
    fn take_note(&mut self, posted: Posted) {
        if self.looked_everywhere.elapsed() > LOOK_EVERYWHERE_EVERY {
            self.looked_everywhere = Instant::now();
            self.low_water = DateTime::UNIX_EPOCH;
            self.look_at = DateTime::UNIX_EPOCH;
            self.announcer.look_again();
        }
        if let Some(due_at) = posted.due_at {
            self.low_water = self.low_water.min(instant(due_at));
            self.look_at = DateTime::UNIX_EPOCH;
            self.drained_until = None;
            self.untenanted_until = None;
            self.herds.look_again();
            // What is due before it is as it was.
            let due_at = instant(due_at);
            let just_before = due_at - TimeDelta::microseconds(1);
            self.staged_until = self.staged_until.min(just_before);
            self.reached = self.reached.filter(|reached| reached.due_at < due_at);
        }
        if let Some(available_at) = posted.available_at {
            self.announcer.note(instant(available_at));
        }
    }

    /// What is to be dispatched now, ahead of its time.
    fn staging(&mut self, now: DateTime<Utc>) -> Option<Staging> {
        guc::lookahead()?;
        let herd = self.herds.ahead(now);
        let next = self.expected;
        let is_near = next > now && next <= now + STAGED_AHEAD.0 && next > self.staged_until;
        if is_near && !self.herds.is_next(next) {
            let reached = self.reached.filter(|reached| reached.due_at >= next);
            return Some(Staging::Near(Ahead {
                after: reached.unwrap_or(Position::before(next)),
                until: now + STAGED_AHEAD.1,
            }));
        }
        herd.map(Staging::Herd)
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

    /// What comes next, and when.
    fn plan(
        &mut self,
        scope: &Scope,
        tick: &Tick,
        staged: Option<(Staging, &Tick)>,
        outlook: &Outlook,
    ) -> DateTime<Utc> {
        let at_once = DateTime::UNIX_EPOCH;
        if let Some(found) = outlook.herd {
            self.herds.note_found(found, scope.now);
        }
        let stages_more = staged.is_some_and(|(staging, batch)| self.note_staged(staging, batch));
        match self.turn {
            Turn::Tenants => {
                self.turn = Turn::Untenanted;
                if !tick.timed_out {
                    self.last_tenant.clone_from(&tick.last_tenant);
                }
                return at_once;
            }
            Turn::Untenanted => {
                self.turn = Turn::Oldest;
                if !tick.timed_out {
                    self.untenanted_until = match tick.full {
                        true => tick.last_due_at(),
                        false => Some(scope.now),
                    };
                }
                return at_once;
            }
            Turn::Oldest if tick.more() => {
                self.turn = Turn::Tenants;
                self.drained_until = tick.last_due_at().or(self.drained_until);
                return at_once;
            }
            Turn::Oldest => self.untenanted_until = None,
        }
        if self.drained_until.take().is_some() {
            // Once more from the start, for what others held locked meanwhile.
            return at_once;
        }
        self.expected = outlook.coming.unwrap_or(DateTime::<Utc>::MAX_UTC);
        self.low_water = outlook
            .next_instant
            .unwrap_or(scope.now)
            .max(self.low_water);
        if stages_more {
            return at_once;
        }
        self.next_look(scope.now, outlook)
    }

    /// True if there may be more to be staged at once.
    fn note_staged(&mut self, staging: Staging, batch: &Tick) -> bool {
        match staging {
            Staging::Herd(ahead) => {
                self.herds.note_staged(ahead.until, batch, time::now());
                !batch.timed_out
            }
            Staging::Near(ahead) => {
                // What is known to have to wait for its instant is not waded through just before it.
                let is_futile = batch.dispatched == 0 && self.herds.is_passed(ahead.after.due_at);
                let goes_on = batch.full && !is_futile;
                self.reached = batch.last.filter(|_| goes_on);
                if !goes_on {
                    self.staged_until = ahead.until;
                }
                goes_on
            }
        }
    }

    fn next_look(&mut self, now: DateTime<Utc>, outlook: &Outlook) -> DateTime<Utc> {
        self.safety_net = after(now, guc::check_interval());
        if let Some(turn) = self.herds.next_turn() {
            self.safety_net = self.safety_net.min(turn);
        }
        let mut look_at = self.safety_net;
        if let Some(coming) = outlook.coming {
            look_at = look_at.min(match guc::lookahead() {
                Some(_) if coming > self.staged_until => coming - STAGED_AHEAD.0,
                _ => coming,
            });
        }
        // Due, and still there after the batch: it is locked elsewhere.
        if outlook.next_instant.is_some_and(|next| next <= now) {
            look_at = look_at.min(after(time::now(), self.locked_wait));
            self.locked_wait = (self.locked_wait * 2).min(LOCKED_ELSEWHERE.1);
        } else {
            self.locked_wait = LOCKED_ELSEWHERE.0;
        }
        look_at
    }

    fn sleep(&self) -> Duration {
        let next = match self.announces() {
            true => self.look_at.min(self.announcer.next()),
            false => self.look_at,
        };
        // By the wall clock, which may be set while we sleep.
        let sleep = (next - time::now()).to_std().unwrap_or(Duration::ZERO);
        let sleep = sleep.min(guc::check_interval());
        match next == self.safety_net {
            // Nothing is expected then: a part of a millisecond is not worth a second awakening.
            true => Duration::from_millis(sleep.as_micros().div_ceil(1000) as u64),
            false => sleep,
        }
    }
}

fn or_raise<T>(outcome: SpiResult<T>) -> T {
    outcome.unwrap_or_else(|error| pgrx::error!("pg_recur: {error}"))
}
