//! The start is the first occurrence, in either pass of a repeated hour.
//!
//! A schedule that counts wall-clock readings from its start loses the instant of that start. Where
//! the clock shows the start twice, the policy for repeated times may choose the other instant. The
//! pin fixes the first occurrence to the given instant.

use crate::policy::OnFold;
use crate::search::wall_clock::hit_at;
use crate::search::{Hit, InstantSet, Policy};
use crate::zone::{Reading, ZoneTable};

/// A start that the policy would resolve to another instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pin {
    start: Hit,
    /// The instant that the policy would choose, in Unix seconds.
    replaced: i64,
}

impl Pin {
    /// The pin for a start, where it needs one.
    pub fn new(table: &ZoneTable, policy: Policy, start: i64) -> Option<Pin> {
        let start = hit_at(table, start);
        let Reading::Twice(fold) = table.read(start.civil) else {
            return None;
        };
        let offset = match policy.on_fold {
            OnFold::First => fold.before,
            OnFold::Second => fold.after,
            OnFold::Both => return None,
        };
        let replaced = start.civil.0 - i64::from(offset);
        (replaced != start.at).then_some(Pin { start, replaced })
    }
}

/// A set of instants with its first one pinned. Queries begin at the start, never before it.
pub(crate) struct Pinned<'a> {
    pub set: &'a dyn InstantSet,
    pub pin: Pin,
}

impl InstantSet for Pinned<'_> {
    fn next_after(&self, instant: i64) -> Option<Hit> {
        if instant < self.pin.start.at {
            return Some(self.pin.start);
        }
        match self.set.next_after(instant) {
            Some(hit) if hit.at == self.pin.replaced => self.set.next_after(hit.at),
            other => other,
        }
    }

    fn last_at_or_before(&self, instant: i64) -> Option<Hit> {
        if instant < self.pin.start.at {
            return None;
        }
        match self.set.last_at_or_before(instant) {
            Some(hit) if hit.at > self.pin.start.at && hit.at != self.pin.replaced => Some(hit),
            _ => Some(self.pin.start),
        }
    }

    fn count_between(&self, after: i64, until: i64, cap: u64) -> u64 {
        let holds = |at: i64| u64::from(after < at && at <= until);
        let count = self.set.count_between(after, until, cap.saturating_add(1));
        (count - holds(self.pin.replaced) + holds(self.pin.start.at)).min(cap)
    }
}
