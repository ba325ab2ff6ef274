//! What to do with an action that is due: a pure function of the action and `now`.
//!
//! A due action has one or more occurrences between `next_run_at` and `now`. The misfire policy decides which of
//! them fire, then the number of runs that the action has left, then the overlap policy. Every occurrence that does
//! not fire is named with a reason. Thousands of missed occurrences are counted, not walked through.
//!
//! An action can also be staged: dispatched ahead of its instant, so that the instant itself costs only a
//! notification. See [`Mode::Stage`].

mod ahead;
mod decision;
mod missed;
mod repeated;
#[cfg(test)]
mod tests;

pub use ahead::Ahead;
pub use decision::{Decision, EndReason, SkipReason, Skipped, StillAhead, Then};
pub use repeated::Repeated;

use crate::policy::{Horizon, Overlap, Policy};
use chrono::{DateTime, TimeDelta, Utc};
use missed::Missed;
use recurrence::Recurrence;

type Instant = DateTime<Utc>;

/// A due action, as far as the decision depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Due<'a> {
    /// When the action occurs.
    pub recurrence: &'a Recurrence,
    /// The earliest occurrence that has not been dispatched.
    pub next_run_at: Instant,
    /// The dispatches that were ahead of their time after the last decision.
    pub ahead: Option<Ahead>,
    /// The last occurrence, if all are dispatched: then `next_run_at` has no meaning.
    pub all_dispatched: Option<Instant>,
    /// How many runs count against `max_runs`.
    pub run_count: i64,
    /// How many runs the action may have.
    pub max_runs: Option<i64>,
    /// Where only completed runs count: how many there are. `run_count` then has the unfinished dispatches as well,
    /// each of which may be completed, so that there are never more completed runs than `max_runs`.
    pub completed: Option<i64>,
    /// What the action wants done.
    pub policy: Policy,
    /// Which of its dispatches are unfinished; see [`Overlap::needs_unfinished`]. Asked where all are dispatched, too.
    pub unfinished: Unfinished,
    /// Of an action that is deduplicated: its occurrences that are duplicates, none at first. Those that a first
    /// decision fires are looked up, and a second decision drops the duplicates among them.
    pub duplicates: Option<Duplicates<'a>>,
    /// At most this many occurrences fire in one decision, and at least one: the rest is still due. It bounds what a
    /// batch writes, whatever its actions say.
    pub share: usize,
}

/// Which dispatches of an action are unfinished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// At least one waits to be claimed.
    pub pending: bool,
    /// At least one is running.
    pub running: bool,
    /// At least one has failed and waits for its retry, long after its occurrence: it holds up no other, but can still
    /// be cancelled.
    pub stale: bool,
}

/// Occurrences whose key is that of a pending dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Duplicates<'a> {
    /// Those that do not fire.
    pub skipped: &'a [DateTime<Utc>],
    /// Those whose payload the pending dispatch takes over.
    pub merged: &'a [DateTime<Utc>],
}

impl Unfinished {
    fn any(self) -> bool {
        self.pending || self.running || self.stale
    }
}

impl Overlap {
    /// Does the decision depend on [`Due::unfinished`]?
    pub fn needs_unfinished(self) -> bool {
        self != Overlap::Allow
    }

    /// May a dispatch be made beside the unfinished ones? With [`Overlap::CancelPrevious`] they are cancelled first.
    ///
    /// ```
    /// use recur_core::decide::Unfinished;
    /// use recur_core::policy::Overlap;
    ///
    /// let running = Unfinished { running: true, ..Unfinished::default() };
    /// assert!(Overlap::QueueOne.admits(running) && !Overlap::Skip.admits(running));
    /// ```
    pub fn admits(self, unfinished: Unfinished) -> bool {
        let Unfinished {
            pending, running, ..
        } = unfinished;
        match self {
            Overlap::Allow | Overlap::CancelPrevious => true,
            Overlap::QueueOne => !pending,
            Overlap::Skip => !pending && !running,
        }
    }
}

/// What is asked of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The action is due now.
    Due,
    /// The action is due later: dispatch its occurrences up to `until` ahead of their time, if nothing can change
    /// the decision before they come.
    ///
    /// Left to its instant is an action that
    /// - may overlap with itself only under conditions, because they are not known before the instant,
    /// - is deduplicated, for the same reason,
    /// - has a horizon, which dispatches ahead by itself, or dispatches ahead,
    /// - ends with these occurrences, because it can still be paused or edited, and an ended action can't,
    /// - counts only completed runs, because it is known at the instant how many there are,
    /// - is due already, or only after `until`.
    Stage {
        /// The last instant to stage for.
        until: DateTime<Utc>,
    },
}

/// Missed occurrences are counted up to this number.
const MOST_COUNTED: u64 = 10_000_000;
/// At most this many occurrences are dispatched ahead of their time in one decision.
const MOST_AHEAD: usize = 50;
/// At most this many occurrences of one action fire in one decision: other actions that are due wait for the batch.
const MOST_FIRED: usize = 1_000;
/// About this many occurrences fire in one batch: it bounds the memory of the batch, and the time in which no other
/// action is dispatched.
const MOST_FIRED_IN_BATCH: usize = 10_000;
/// A dispatch with a larger payload counts as several: a page of the server.
const BYTES_OF_ONE: usize = 8_192;
/// The resolution of stored instants.
const MICROSECOND: TimeDelta = TimeDelta::microseconds(1);

/// Decides what to do with an action. `None` leaves a staged action to its instant; in [`Mode::Due`] there is
/// always a decision.
///
/// ```
/// use chrono::{DateTime, TimeDelta, Utc};
/// use recur_core::decide::{Due, Mode, Then, Unfinished, decide};
/// use recur_core::policy::{Misfire, Overlap, Policy};
/// use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Zone};
///
/// let daily = Schedule::parse("0 12 * * *").unwrap().into();
/// let recurrence =
///     Recurrence::new(daily, Zone::UTC, Bounds::default(), OnGap::default(), OnFold::default()).unwrap();
/// let noon: DateTime<Utc> = "2030-01-01T12:00:00Z".parse().unwrap();
/// let due = Due {
///     recurrence: &recurrence,
///     next_run_at: noon,
///     ahead: None,
///     all_dispatched: None,
///     run_count: 0,
///     max_runs: None,
///     completed: None,
///     policy: Policy {
///         misfire: Misfire::Once,
///         misfire_grace: None,
///         catchup_limit: 10,
///         overlap: Overlap::Allow,
///         horizon: None,
///     },
///     unfinished: Unfinished::default(),
///     duplicates: None,
///     share: 1,
/// };
/// let tomorrow = noon + TimeDelta::days(1);
/// let then = Then::Wait { next_run_at: tomorrow, due_at: tomorrow };
///
/// let decision = decide(&due, noon, Mode::Due).unwrap();
/// assert_eq!((decision.fire, decision.then), (vec![noon], then));
/// // Five seconds ahead, the same.
/// let decision = decide(&due, noon - TimeDelta::seconds(5), Mode::Stage { until: noon }).unwrap();
/// assert_eq!((decision.fire, decision.then), (vec![noon], then));
/// // An action that must not overlap with itself is decided at its instant.
/// let policy = Policy { overlap: Overlap::Skip, ..due.policy };
/// let careful = Due { policy, ..due };
/// assert_eq!(decide(&careful, noon - TimeDelta::seconds(5), Mode::Stage { until: noon }), None);
/// ```
pub fn decide(due: &Due<'_>, now: Instant, mode: Mode) -> Option<Decision> {
    match mode {
        Mode::Due => Some(due.settle(now)),
        Mode::Stage { until } => due.stage(now, until),
    }
}

/// How many occurrences each action of a batch may fire: [`Due::share`].
///
/// ```
/// use recur_core::decide::share_of_batch;
///
/// assert_eq!(share_of_batch(40), 250);
/// assert_eq!(share_of_batch(100_000), 1);
/// ```
pub fn share_of_batch(actions: usize) -> usize {
    (MOST_FIRED_IN_BATCH / actions.max(1)).clamp(1, MOST_FIRED)
}

/// As how many dispatches one counts whose payload and metadata take this many bytes: limits of numbers bound what is
/// written, too.
///
/// ```
/// use recur_core::decide::weight;
///
/// assert_eq!(weight(200), 1);
/// assert_eq!(weight(1_048_576), 129);
/// ```
pub fn weight(bytes: usize) -> usize {
    1 + bytes / BYTES_OF_ONE
}

impl Due<'_> {
    fn decide(&self, now: Instant) -> Decision {
        let mut decision = Decision::ending(EndReason::Exhausted);
        if self.is_exhausted() {
            return decision;
        }
        // An occurrence at or before ends_at fires even if it is seen late; one after it does not.
        let ends_at = self.recurrence.bounds().ends_at;
        let mut settled_until = now.max(self.next_run_at - MICROSECOND);
        if self.next_run_at <= now && ends_at.is_none_or(|end| self.next_run_at <= end) {
            settled_until = Missed { due: self, now }.settle(&mut decision);
        }
        self.keep_within_max_runs(&mut decision);
        self.yield_to_unfinished(&mut decision);
        self.drop_duplicates(&mut decision);
        let horizon = self.policy.usable_horizon();
        let horizon = horizon.filter(|_| self.duplicates.is_none());
        let mut is_ahead_full = false;
        if let Some(horizon) = horizon {
            is_ahead_full = self.fire_ahead(&mut decision, horizon, now, &mut settled_until);
        }
        let fired = decision.fire.len() as i64;
        let has_room = self.runs_left().is_none_or(|left| left > fired);
        decision.then = self.then(decision.fire.len(), settled_until, |next| match horizon {
            Some(horizon) if has_room => self.due_at(next, horizon, now, is_ahead_full),
            _ => next,
        });
        decision
    }

    fn stage(&self, now: Instant, until: Instant) -> Option<Decision> {
        let Policy {
            overlap, horizon, ..
        } = self.policy;
        let is_counted_later = self.completed.is_some() && self.max_runs.is_some();
        if overlap.needs_unfinished()
            || self.duplicates.is_some()
            || horizon.is_some()
            || self.ahead.is_some()
            || self.all_dispatched.is_some()
            || is_counted_later
        {
            return None;
        }
        let mut decision = Decision::ending(EndReason::Exhausted);
        let lookahead = Horizon {
            reach: until - now,
            count: usize::MAX,
        };
        let mut settled_until = self.next_run_at - MICROSECOND;
        self.fire_ahead(&mut decision, lookahead, now, &mut settled_until);
        decision.then = self.then(decision.fire.len(), settled_until, |next| next);
        let waits = matches!(decision.then, Then::Wait { .. });
        (waits && !decision.fire.is_empty()).then_some(decision)
    }

    fn share(&self) -> usize {
        self.share.clamp(1, MOST_FIRED)
    }

    fn runs_left(&self) -> Option<i64> {
        self.max_runs.map(|limit| limit - self.run_count)
    }

    /// Has the action had all of its runs?
    fn is_exhausted(&self) -> bool {
        let runs = self.completed.unwrap_or(self.run_count);
        self.max_runs.is_some_and(|limit| runs >= limit)
    }

    fn occurrence_after(&self, instant: Instant) -> Option<Instant> {
        Some(self.recurrence.next_after(instant)?.at)
    }

    /// The next occurrence when everything up to an instant is settled. `next_run_at` counts even if it was set by
    /// hand.
    fn upcoming(&self, settled_until: Instant) -> Option<Instant> {
        if settled_until >= self.next_run_at {
            return self.occurrence_after(settled_until);
        }
        let ends_at = self.recurrence.bounds().ends_at;
        Some(self.next_run_at).filter(|next| ends_at.is_none_or(|end| *next <= end))
    }

    /// Drops what must not fire beside an unfinished dispatch, or beside another of the same decision.
    fn yield_to_unfinished(&self, decision: &mut Decision) {
        let Unfinished {
            pending,
            running,
            stale,
        } = self.unfinished;
        let fire = &mut decision.fire;
        let dropped: Vec<Instant> = match self.policy.overlap {
            Overlap::Allow => return,
            overlap if !overlap.admits(self.unfinished) => std::mem::take(fire),
            Overlap::Skip | Overlap::QueueOne => fire.split_off(fire.len().min(1)),
            Overlap::CancelPrevious => {
                decision.cancels_previous = (pending || running || stale) && !fire.is_empty();
                let last = fire.pop();
                let earlier = std::mem::take(fire);
                fire.extend(last);
                earlier
            }
        };
        decision.skip(SkipReason::Overlap, &dropped);
    }

    /// Drops what has the key of a pending dispatch. An occurrence that does not fire cancels nothing.
    fn drop_duplicates(&self, decision: &mut Decision) {
        let Some(duplicates) = self.duplicates else {
            return;
        };
        for (reason, of_reason) in [
            (SkipReason::Duplicate, duplicates.skipped),
            (SkipReason::Merged, duplicates.merged),
        ] {
            let fire = std::mem::take(&mut decision.fire);
            let (dropped, kept): (Vec<_>, Vec<_>) =
                fire.into_iter().partition(|at| of_reason.contains(at));
            decision.fire = kept;
            decision.skip(reason, &dropped);
        }
        decision.cancels_previous &= !decision.fire.is_empty();
    }

    /// Drops what is more than the action may have. Where only completed runs count, the action goes on: an unfinished
    /// run may fail.
    fn keep_within_max_runs(&self, decision: &mut Decision) {
        let Some(left) = self.runs_left() else {
            return;
        };
        let left = usize::try_from(left).unwrap_or(0);
        let dropped = decision.fire.split_off(left.min(decision.fire.len()));
        if self.completed.is_some() {
            decision.skip(SkipReason::MaxRuns, &dropped);
        }
    }

    /// Adds the occurrences within a horizon. True if the horizon holds as many as it may.
    fn fire_ahead(
        &self,
        decision: &mut Decision,
        horizon: Horizon,
        now: Instant,
        settled_until: &mut Instant,
    ) -> bool {
        // Missed occurrences come first.
        if *settled_until < now {
            return false;
        }
        let just_before_next = self.next_run_at - MICROSECOND;
        // Staging asks for no count.
        let is_counted = horizon.count < usize::MAX;
        let mut ahead = match is_counted && just_before_next > now {
            true => {
                let most = u64::try_from(horizon.count).unwrap_or(MOST_COUNTED);
                let counted =
                    self.recurrence
                        .count_between(now, just_before_next, most.min(MOST_COUNTED));
                usize::try_from(counted).unwrap_or(usize::MAX)
            }
            false => 0,
        };
        let runs_left = self.runs_left();
        let reach = now.checked_add_signed(horizon.reach).unwrap_or(now);
        let mut next = self.upcoming(*settled_until);
        let mut added = 0;
        while let Some(occurrence) = next.filter(|occurrence| *occurrence <= reach) {
            if ahead >= horizon.count {
                return true;
            }
            if added == MOST_AHEAD
                || decision.fire.len() >= self.share()
                || runs_left.is_some_and(|left| decision.fire.len() as i64 >= left)
            {
                break;
            }
            decision.fire.push(occurrence);
            *settled_until = occurrence;
            ahead += 1;
            added += 1;
            next = self.occurrence_after(occurrence);
        }
        ahead >= horizon.count
    }

    fn then(
        &self,
        fired: usize,
        settled_until: Instant,
        due_at: impl FnOnce(Instant) -> Instant,
    ) -> Then {
        let runs = self.run_count + fired as i64;
        // Where only completed runs count, an action ends when they are completed.
        if self.completed.is_none() && self.max_runs.is_some_and(|limit| runs >= limit) {
            return Then::End(EndReason::Exhausted);
        }
        match self.upcoming(settled_until) {
            Some(next) => Then::Wait {
                next_run_at: next,
                due_at: due_at(next),
            },
            None => Then::End(self.reason_of_no_next()),
        }
    }

    fn reason_of_no_next(&self) -> EndReason {
        match self.recurrence.bounds().ends_at {
            Some(_) => EndReason::Expired,
            None => EndReason::NoNext,
        }
    }

    /// When the next occurrence comes within the horizon, or, if the horizon is full, when it has room. Not before now:
    /// an action that dispatches far ahead is not longer due than one that is late.
    fn due_at(
        &self,
        next: Instant,
        horizon: Horizon,
        now: Instant,
        is_ahead_full: bool,
    ) -> Instant {
        let within_reach = next.checked_sub_signed(horizon.reach).unwrap_or(next);
        let within_reach = within_reach.max(now.min(next));
        if !is_ahead_full {
            return within_reach;
        }
        let room = self.occurrence_after(now).unwrap_or(next);
        within_reach.max(room)
    }
}
