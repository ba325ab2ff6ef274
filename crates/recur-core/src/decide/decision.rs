//! The answer of a decision.

use crate::choice::choice;
use crate::event::EventKind;
use chrono::{DateTime, Utc};

/// What to do with one action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The occurrences to dispatch, in order.
    pub fire: Vec<DateTime<Utc>>,
    /// The occurrences that do not fire, and why.
    pub skipped: Vec<Skipped>,
    /// True if the action's earlier dispatches are to be cancelled.
    pub cancels_previous: bool,
    /// The dispatches that are ahead of their time after that, staged ones apart.
    pub ahead: Option<StillAhead>,
    /// What the action does after that.
    pub then: Then,
}

impl Decision {
    /// Nothing fires, and the action ends.
    pub(super) fn ending(reason: EndReason) -> Decision {
        Decision {
            fire: Vec::new(),
            skipped: Vec::new(),
            cancels_previous: false,
            ahead: None,
            then: Then::End(reason),
        }
    }

    /// Notes that these occurrences, in order, do not fire.
    pub(super) fn skip(&mut self, reason: SkipReason, dropped: &[DateTime<Utc>]) {
        if let (Some(from), Some(until)) = (dropped.first(), dropped.last()) {
            self.skipped.push(Skipped {
                reason,
                from: *from,
                until: *until,
                count: dropped.len() as u64,
            });
        }
    }
}

/// The dispatches that are ahead of their time after a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StillAhead {
    /// The first of them.
    pub first: DateTime<Utc>,
    /// The latest occurrence that has come due since the last decision.
    pub came_due: Option<DateTime<Utc>>,
}

/// A run of occurrences that do not fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Why they do not fire.
    pub reason: SkipReason,
    /// The first of them.
    pub from: DateTime<Utc>,
    /// The last of them.
    pub until: DateTime<Utc>,
    /// How many there are; very many are counted only up to a limit.
    pub count: u64,
}

choice! {
    /// Why an occurrence does not fire, as recorded in the event.
    pub enum SkipReason in "reason" {
        /// It was seen too late, or a later one stands for it.
        Misfire = "misfire",
        /// An earlier dispatch is unfinished.
        Overlap = "overlap",
        /// The unfinished dispatches may be the last that `max_runs` allows.
        MaxRuns = "max_runs",
        /// A dispatch with the same key is pending.
        Duplicate = "duplicate",
        /// A pending dispatch with the same key has taken over its payload.
        Merged = "merged",
    }
}

/// What an action does after a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It waits for its next occurrence.
    Wait {
        /// The next occurrence that is to be dispatched.
        next_run_at: DateTime<Utc>,
        /// When to decide again: at that occurrence, or earlier if it is dispatched ahead.
        due_at: DateTime<Utc>,
    },
    /// All of its occurrences are dispatched, some ahead of their time: it ends when none is unfinished.
    Finish {
        /// When to decide again: when the first of those ahead comes due, or to see what is unfinished.
        due_at: DateTime<Utc>,
    },
    /// It has ended.
    End(EndReason),
}

choice! {
    /// Why an action has ended, as stored in `ended_reason`.
    pub enum EndReason in "ended_reason" {
        /// `max_runs` is reached.
        Exhausted = "exhausted",
        /// Nothing more occurs up to `ends_at`.
        Expired = "expired",
        /// The schedule itself has come to its end.
        NoNext = "no_next",
    }
}

impl EndReason {
    /// The kind of the event that records the end.
    pub const fn event_kind(self) -> EventKind {
        match self {
            EndReason::Exhausted => EventKind::Exhausted,
            EndReason::Expired => EventKind::Expired,
            EndReason::NoNext => EventKind::NoNext,
        }
    }
}
