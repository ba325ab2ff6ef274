//! Dispatches ahead of their time: generated, and not come due.
//!
//! An action with such dispatches is looked at whenever the first of them comes due. So it is known which have come
//! due, and the action ends when the last has, not when it was generated.

use super::{Decision, Due, EndReason, Instant, StillAhead, Then};

/// The dispatches that were ahead of their time after the last decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// The first of them.
    pub first: Instant,
    /// The last of them.
    pub last: Instant,
    /// Were they the last of the action? Then `next_run_at` has no meaning.
    pub is_end: bool,
}

impl Due<'_> {
    /// Decides what to dispatch, and notes which dispatches ahead have come due.
    pub(super) fn settle(&self, now: Instant) -> Decision {
        let is_end = self.ahead.is_some_and(|ahead| ahead.is_end);
        let mut decision = match is_end {
            true => Decision::ending(self.reason_of_end()),
            false => self.decide(now),
        };
        if let Some(first) = self.first_ahead(&decision, now) {
            decision.ahead = Some(StillAhead {
                first,
                came_due: self.came_due(&decision, now),
            });
            decision.then = match decision.then {
                Then::Wait {
                    next_run_at,
                    due_at,
                } => Then::Wait {
                    next_run_at,
                    due_at: due_at.min(first),
                },
                Then::End(_) | Then::Finish { .. } => Then::Finish { due_at: first },
            };
        }
        decision
    }

    fn reason_of_end(&self) -> EndReason {
        match self.is_exhausted() {
            true => EndReason::Exhausted,
            false => self.reason_of_no_next(),
        }
    }

    fn first_ahead(&self, decision: &Decision, now: Instant) -> Option<Instant> {
        let fired = decision.fire.iter().copied().find(|at| *at > now);
        let earlier = self.ahead.filter(|ahead| ahead.last > now).map(|ahead| {
            let after_now = match ahead.first > now {
                true => Some(ahead.first),
                false => self.occurrence_after(now),
            };
            after_now.map_or(ahead.last, |at| at.min(ahead.last))
        });
        fired.into_iter().chain(earlier).min()
    }

    fn came_due(&self, decision: &Decision, now: Instant) -> Option<Instant> {
        let fired = decision.fire.iter().copied().rfind(|at| *at <= now);
        let earlier = self.ahead.filter(|ahead| ahead.first <= now).map(|ahead| {
            let latest = self.recurrence.previous_or_at(ahead.last.min(now));
            latest.map_or(ahead.first, |latest| latest.at.max(ahead.first))
        });
        fired.into_iter().chain(earlier).max()
    }
}
