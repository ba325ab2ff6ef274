//! Dispatches ahead of their time: generated, and not come due.
//!
//! An action with such dispatches is looked at whenever the first of them comes due, so it is known which have come
//! due. The action ends neither when the last is generated nor when it comes due, but when nothing is unfinished: until
//! then it can be paused and edited. Who finishes a dispatch has the action looked at; in case that is missed, the
//! action is looked at again, at ever longer intervals.

use super::{Decision, Due, EndReason, Instant, StillAhead, Then};
use chrono::TimeDelta;

/// The interval is as long as the last occurrence is past, within these bounds.
const LOOK_AGAIN_AFTER: (TimeDelta, TimeDelta) = (TimeDelta::seconds(10), TimeDelta::hours(1));

/// The dispatches that were ahead of their time after the last decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// The first of them.
    pub first: Instant,
    /// The last of them.
    pub last: Instant,
}

impl Due<'_> {
    /// Decides what to dispatch, and notes which dispatches ahead have come due.
    pub(super) fn settle(&self, now: Instant) -> Decision {
        let mut decision = match self.all_dispatched {
            Some(_) => Decision::ending(self.reason_of_end()),
            None => self.decide(now),
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
        } else if let Then::End(_) = decision.then
            && let Some(due_at) = self.ends_later(now)
        {
            decision.then = Then::Finish { due_at };
        }
        decision
    }

    /// When to see again whether an action that has no more occurrences ends; None if it ends now. What is unfinished
    /// is asked only of actions of which all is dispatched.
    fn ends_later(&self, now: Instant) -> Option<Instant> {
        let dispatches_ahead = self.ahead.is_some() || self.policy.usable_horizon().is_some();
        match self.all_dispatched {
            None => dispatches_ahead.then_some(now),
            Some(last) => self.unfinished.any().then(|| {
                let (shortest, longest) = LOOK_AGAIN_AFTER;
                now + (now - last).clamp(shortest, longest)
            }),
        }
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
