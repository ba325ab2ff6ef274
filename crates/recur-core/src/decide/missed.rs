//! The misfire policy: which of the missed occurrences fire.

use super::{Decision, Due, Instant, MICROSECOND, MOST_COUNTED, SkipReason, Skipped};
use crate::policy::{DEFAULT_GRACE, Misfire};
use chrono::TimeDelta;

/// The occurrences from `next_run_at` to `now`.
pub(super) struct Missed<'a> {
    pub due: &'a Due<'a>,
    pub now: Instant,
}

impl Missed<'_> {
    /// Decides about the occurrences and returns the instant up to which they are settled.
    pub fn settle(&self, decision: &mut Decision) -> Instant {
        let grace = self.due.policy.misfire_grace;
        match self.due.policy.misfire {
            Misfire::Once => self.fire_latest(decision, grace),
            Misfire::Skip => self.fire_latest(decision, grace.or(Some(DEFAULT_GRACE))),
            Misfire::All => self.fire_each(decision),
        }
    }

    /// Fires the latest, unless it is older than the grace.
    fn fire_latest(&self, decision: &mut Decision, grace: Option<TimeDelta>) -> Instant {
        let first = self.due.next_run_at;
        let latest = self.last_at_or_before(self.now).unwrap_or(first);
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

    /// Fires oldest first, up to the share of the decision. What is too old or too much for the action is skipped.
    fn fire_each(&self, decision: &mut Decision) -> Instant {
        let mut next = Some(self.due.next_run_at);
        if let Some(until) = self.too_many(self.too_old()) {
            self.skip(decision, until);
            next = self.due.occurrence_after(until);
        }
        let share = self.due.share();
        while let Some(occurrence) = next.filter(|occurrence| *occurrence <= self.now) {
            if decision.fire.len() == share {
                // The rest is still due, and belongs to the next decision.
                return occurrence - MICROSECOND;
            }
            decision.fire.push(occurrence);
            next = self.due.occurrence_after(occurrence);
        }
        self.now
    }

    /// The last occurrence that is older than the grace.
    fn too_old(&self) -> Option<Instant> {
        let grace = self.due.policy.misfire_grace?;
        let oldest = self.now.checked_sub_signed(grace)?;
        self.last_at_or_before(oldest - MICROSECOND)
    }

    /// The last occurrence that does not fire, when everything up to `skipped` is skipped already: of the rest, the
    /// newest are kept, as many as `catchup_limit` says.
    ///
    /// A later decision about the same outage finds no more than these, and skips nothing.
    fn too_many(&self, skipped: Option<Instant>) -> Option<Instant> {
        let limit = u64::try_from(self.due.policy.catchup_limit).unwrap_or(u64::MAX);
        // Occurrences are whole seconds apart.
        let after = |seconds| match skipped {
            Some(skipped) => skipped + TimeDelta::seconds(seconds),
            None => self.due.next_run_at + TimeDelta::seconds(seconds - 1),
        };
        let exceeds = |seconds| self.count_after(after(seconds), limit.saturating_add(1)) > limit;
        if !exceeds(0) {
            return skipped;
        }
        let (mut too_early, mut enough) = (0, (self.now - after(0)).num_seconds() + 1);
        while enough - too_early > 1 {
            let middle = too_early + (enough - too_early) / 2;
            match exceeds(middle) {
                true => too_early = middle,
                false => enough = middle,
            }
        }
        self.last_at_or_before(after(enough))
    }

    /// How many occurrences are due after an instant, counted up to a limit.
    fn count_after(&self, instant: Instant, limit: u64) -> u64 {
        let first = self.due.next_run_at;
        let counted = self.due.recurrence.count_between(
            instant.max(first),
            self.now,
            limit.min(MOST_COUNTED),
        );
        counted + u64::from(instant < first)
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
