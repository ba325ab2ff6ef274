//! The misfire policy: which of the missed occurrences fire.

use super::{Decision, Due, Instant, MICROSECOND, MOST_COUNTED, SkipReason, Skipped};
use crate::policy::{DEFAULT_GRACE, Misfire};

/// The occurrences from `next_run_at` to `now`.
pub(super) struct Missed<'a> {
    pub due: &'a Due<'a>,
    pub now: Instant,
}

impl Missed<'_> {
    /// Decides about the occurrences and returns the instant up to which they are settled.
    pub fn settle(&self, decision: &mut Decision) -> Instant {
        match self.due.policy.misfire {
            Misfire::Once => self.fire_latest(decision),
            Misfire::Skip | Misfire::All => self.fire_each(decision),
        }
    }

    fn fire_latest(&self, decision: &mut Decision) -> Instant {
        let first = self.due.next_run_at;
        let latest = self.last_at_or_before(self.now).unwrap_or(first);
        let grace = self.due.policy.misfire_grace;
        if grace.is_some_and(|grace| self.now - latest > grace) {
            self.skip(decision, latest);
        } else {
            if let Some(until) = self.last_at_or_before(latest - MICROSECOND) {
                self.skip(decision, until);
            }
            decision.fire.push(latest);
        }
        self.now
    }

    /// Fires oldest first, up to the limits of the action and of the decision.
    fn fire_each(&self, decision: &mut Decision) -> Instant {
        let policy = &self.due.policy;
        let grace = match policy.misfire {
            Misfire::Skip => policy.misfire_grace.or(Some(DEFAULT_GRACE)),
            _ => policy.misfire_grace,
        };
        let mut next = Some(self.due.next_run_at);
        if let Some(oldest) = grace.and_then(|grace| self.now.checked_sub_signed(grace))
            && let Some(until) = self.last_at_or_before(oldest - MICROSECOND)
        {
            self.skip(decision, until);
            next = self.due.occurrence_after(until);
        }
        let limit = policy.catchup_limit.min(self.due.share());
        while let Some(occurrence) = next.filter(|occurrence| *occurrence <= self.now) {
            if decision.fire.len() == limit {
                // The rest is still due, and belongs to the next decision.
                return occurrence - MICROSECOND;
            }
            decision.fire.push(occurrence);
            next = self.due.occurrence_after(occurrence);
        }
        self.now
    }

    /// The last due occurrence up to an instant. `next_run_at` counts as one even if it was set by hand.
    fn last_at_or_before(&self, instant: Instant) -> Option<Instant> {
        let first = self.due.next_run_at;
        if instant < first {
            return None;
        }
        let latest = self.due.recurrence.previous_or_at(instant);
        Some(latest.map_or(first, |latest| latest.at.max(first)))
    }

    /// Skips everything up to and including `until`.
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
