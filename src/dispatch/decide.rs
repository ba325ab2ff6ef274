//! What to do with an action that is due: a pure function of the action and `now`.
//!
//! An action that is due has one or more occurrences between `next_run_at` and `now`. Which of them fire is a matter of
//! its misfire policy, then of the runs that it has left, then of its overlap policy. Whatever does not fire is named
//! with a reason. Thousands of missed occurrences are counted, not walked through.

use chrono::{DateTime, TimeDelta, Utc};
use recurrence::Recurrence;

type Instant = DateTime<Utc>;

/// A due action, as far as the decision depends on it.
pub struct Due<'a> {
    pub recurrence: &'a Recurrence,
    /// The earliest occurrence that has not been dispatched.
    pub next_run_at: Instant,
    pub run_count: i64,
    pub max_runs: Option<i64>,
    pub policy: Policy,
    /// What of it is still unfinished. Only asked for where the overlap policy depends on it.
    pub unfinished: Unfinished,
}

#[derive(Clone, Copy, Debug)]
pub struct Policy {
    pub misfire: Misfire,
    /// An occurrence older than this does not fire.
    pub misfire_grace: Option<TimeDelta>,
    /// So many missed occurrences at once at the most, where more than one fires.
    pub catchup_limit: usize,
    pub overlap: Overlap,
    /// How far ahead occurrences are dispatched.
    pub horizon: Option<Horizon>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfire {
    /// However many were missed, one dispatch, for the latest of them.
    Once,
    /// Only what is no older than the grace, which is a minute unless it is set.
    Skip,
    /// Every one, oldest first.
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    Allow,
    /// Nothing fires while an earlier dispatch is unfinished.
    Skip,
    /// One may wait behind the one that runs.
    QueueOne,
    /// The earlier ones make room.
    CancelPrevious,
}

#[derive(Clone, Copy, Debug)]
pub struct Horizon {
    pub reach: TimeDelta,
    /// So many future ones at the most.
    pub count: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Unfinished {
    pub pending: bool,
    pub running: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Decision {
    /// The occurrences to dispatch, in order.
    pub fire: Vec<Instant>,
    /// Those that do not fire, and why.
    pub skipped: Vec<Skipped>,
    /// Earlier dispatches are to be cancelled.
    pub cancels_previous: bool,
    pub then: Then,
}

/// A run of occurrences that do not fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    pub reason: SkipReason,
    pub from: Instant,
    pub until: Instant,
    pub count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    Misfire,
    Overlap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Wait {
        /// The next occurrence that is to be dispatched.
        next: Instant,
        /// When to look at the action again: then, or earlier if it is dispatched ahead.
        look_at: Instant,
    },
    End(EndReason),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// `max_runs` reached.
    Exhausted,
    /// Nothing more up to `ends_at`.
    Expired,
    /// The schedule itself has come to its end.
    NoNext,
}

impl SkipReason {
    /// As recorded in the event.
    pub fn name(self) -> &'static str {
        match self {
            SkipReason::Misfire => "misfire",
            SkipReason::Overlap => "overlap",
        }
    }
}

impl EndReason {
    /// As stored in `ended_reason`.
    pub fn name(self) -> &'static str {
        match self {
            EndReason::Exhausted => "exhausted",
            EndReason::Expired => "expired",
            EndReason::NoNext => "no_next",
        }
    }

    /// The event that tells of it.
    pub fn event_kind(self) -> &'static str {
        match self {
            EndReason::Exhausted => "action.exhausted",
            EndReason::Expired => "action.expired",
            EndReason::NoNext => "action.no_next",
        }
    }
}

/// The grace of `misfire = skip` where none is set.
const DEFAULT_GRACE: TimeDelta = TimeDelta::minutes(1);
/// A longer row of missed occurrences is not counted to its end.
const MOST_COUNTED: u64 = 10_000_000;
/// So many occurrences ahead of their time in one go.
const MOST_AHEAD: usize = 50;

pub fn decide(due: &Due, now: Instant) -> Decision {
    let mut decision = Decision {
        fire: Vec::new(),
        skipped: Vec::new(),
        cancels_previous: false,
        then: Then::End(EndReason::Exhausted),
    };
    let runs_left = due.max_runs.map(|limit| limit - due.run_count);
    if runs_left.is_some_and(|left| left <= 0) {
        return decision;
    }
    // An occurrence at or before ends_at fires even if it is seen late; one after it is none.
    let ends_at = due.recurrence.bounds().ends_at;
    let just_before_next = due.next_run_at - TimeDelta::microseconds(1);
    let mut settled_until = now.max(just_before_next);
    if due.next_run_at <= now && ends_at.is_none_or(|end| due.next_run_at <= end) {
        let missed = Missed { due, now };
        settled_until = match due.policy.misfire {
            Misfire::Once => missed.latest(&mut decision),
            Misfire::Skip | Misfire::All => missed.each(&mut decision),
        };
    }
    if let Some(left) = runs_left {
        decision.fire.truncate(usize::try_from(left).unwrap_or(0));
    }
    due.yield_to_unfinished(&mut decision);
    let is_ahead_full = due.look_ahead(&mut decision, now, &mut settled_until);
    decision.then = due.then(&decision, settled_until, now, is_ahead_full);
    decision
}

/// The occurrences from `next_run_at` to `now`.
struct Missed<'a> {
    due: &'a Due<'a>,
    now: Instant,
}

impl Missed<'_> {
    fn latest(&self, decision: &mut Decision) -> Instant {
        let first = self.due.next_run_at;
        let latest = self.last_at_or_before(self.now).unwrap_or(first);
        let is_too_old = self
            .due
            .policy
            .misfire_grace
            .is_some_and(|grace| self.now - latest > grace);
        if is_too_old {
            self.skip(decision, latest);
        } else {
            if let Some(until) = self.last_at_or_before(latest - TimeDelta::microseconds(1)) {
                self.skip(decision, until);
            }
            decision.fire.push(latest);
        }
        self.now
    }

    /// Fires oldest first; returns how far it has come.
    fn each(&self, decision: &mut Decision) -> Instant {
        let policy = &self.due.policy;
        let grace = match policy.misfire {
            Misfire::Skip => policy.misfire_grace.or(Some(DEFAULT_GRACE)),
            _ => policy.misfire_grace,
        };
        let mut next = Some(self.due.next_run_at);
        if let Some(oldest) = grace.and_then(|grace| self.now.checked_sub_signed(grace))
            && let Some(until) = self.last_at_or_before(oldest - TimeDelta::microseconds(1))
        {
            self.skip(decision, until);
            next = self.due.occurrence_after(until);
        }
        while let Some(occurrence) = next.filter(|occurrence| *occurrence <= self.now) {
            if decision.fire.len() == policy.catchup_limit {
                // The rest is still due, and comes next time.
                return occurrence - TimeDelta::microseconds(1);
            }
            decision.fire.push(occurrence);
            next = self.due.occurrence_after(occurrence);
        }
        self.now
    }

    /// The last occurrence that is due up to an instant. `next_run_at` counts as one even if somebody has set it by hand.
    fn last_at_or_before(&self, instant: Instant) -> Option<Instant> {
        let first = self.due.next_run_at;
        if instant < first {
            return None;
        }
        let latest = self.due.recurrence.previous_or_at(instant);
        Some(latest.map_or(first, |latest| latest.at.max(first)))
    }

    /// Everything up to and including `until`.
    fn skip(&self, decision: &mut Decision, until: Instant) {
        let from = self.due.next_run_at;
        decision.skipped.push(Skipped {
            reason: SkipReason::Misfire,
            from,
            until,
            count: 1 + self.due.recurrence.count_between(from, until, MOST_COUNTED),
        });
    }
}

impl Due<'_> {
    fn occurrence_after(&self, instant: Instant) -> Option<Instant> {
        Some(self.recurrence.next_after(instant)?.at)
    }

    /// What comes when everything up to an instant is settled. `next_run_at` counts even if somebody has set it by hand.
    fn upcoming(&self, settled_until: Instant) -> Option<Instant> {
        if settled_until >= self.next_run_at {
            return self.occurrence_after(settled_until);
        }
        let ends_at = self.recurrence.bounds().ends_at;
        Some(self.next_run_at).filter(|next| ends_at.is_none_or(|end| *next <= end))
    }

    /// Drops what may not fire beside an unfinished dispatch, or beside another of the same batch.
    fn yield_to_unfinished(&self, decision: &mut Decision) {
        let Unfinished { pending, running } = self.unfinished;
        let fire = &mut decision.fire;
        let dropped: Vec<Instant> = match self.policy.overlap {
            Overlap::Allow => return,
            Overlap::Skip if pending || running => std::mem::take(fire),
            Overlap::QueueOne if pending => std::mem::take(fire),
            Overlap::Skip | Overlap::QueueOne => fire.split_off(fire.len().min(1)),
            Overlap::CancelPrevious => {
                decision.cancels_previous = (pending || running) && !fire.is_empty();
                let last = fire.pop();
                let earlier = std::mem::take(fire);
                fire.extend(last);
                earlier
            }
        };
        if let (Some(from), Some(until)) = (dropped.first(), dropped.last()) {
            decision.skipped.push(Skipped {
                reason: SkipReason::Overlap,
                from: *from,
                until: *until,
                count: dropped.len() as u64,
            });
        }
    }

    /// Adds what lies within the horizon. True if it may hold no more for now.
    fn look_ahead(
        &self,
        decision: &mut Decision,
        now: Instant,
        settled_until: &mut Instant,
    ) -> bool {
        // Whether something will overlap can't be known ahead.
        let horizon = match self.policy.horizon {
            Some(horizon) if self.policy.overlap == Overlap::Allow => horizon,
            _ => return false,
        };
        if *settled_until < now {
            return false;
        }
        let just_before_next = self.next_run_at - TimeDelta::microseconds(1);
        let mut ahead = match just_before_next > now {
            true => self
                .recurrence
                .count_between(now, just_before_next, MOST_COUNTED),
            false => 0,
        } as usize;
        let runs_left = self.max_runs.map(|limit| limit - self.run_count);
        let reach = now.checked_add_signed(horizon.reach).unwrap_or(now);
        let mut next = self.upcoming(*settled_until);
        let mut added = 0;
        while let Some(occurrence) = next.filter(|occurrence| *occurrence <= reach) {
            if horizon.count.is_some_and(|most| ahead >= most) {
                return true;
            }
            if added == MOST_AHEAD
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
        horizon.count.is_some_and(|most| ahead >= most)
    }

    fn then(
        &self,
        decision: &Decision,
        settled_until: Instant,
        now: Instant,
        is_ahead_full: bool,
    ) -> Then {
        let runs = self.run_count + decision.fire.len() as i64;
        if self.max_runs.is_some_and(|limit| runs >= limit) {
            return Then::End(EndReason::Exhausted);
        }
        match self.upcoming(settled_until) {
            Some(next) => Then::Wait {
                next,
                look_at: self.look_at(next, now, is_ahead_full),
            },
            None if self.recurrence.bounds().ends_at.is_some() => Then::End(EndReason::Expired),
            None => Then::End(EndReason::NoNext),
        }
    }

    fn look_at(&self, next: Instant, now: Instant, is_ahead_full: bool) -> Instant {
        let Some(horizon) = self
            .policy
            .horizon
            .filter(|_| self.policy.overlap == Overlap::Allow)
        else {
            return next;
        };
        let within_reach = next.checked_sub_signed(horizon.reach).unwrap_or(next);
        if !is_ahead_full {
            return within_reach;
        }
        // There is room for another when the first of those ahead has come.
        let room = self.occurrence_after(now).unwrap_or(next);
        within_reach.max(room)
    }
}
