//! The start is the first occurrence, whichever pass of a repeated hour it falls in.
//!
//! A schedule that counts wall-clock readings from its start forgets the instant of that start: if
//! the clock shows it twice, the policy for repeated times may pick the other of the two. The pin
//! holds the first occurrence to the instant that was given.

use crate::policy::OnFold;
use crate::search::wall_clock::show;
use crate::search::{Hit, InstantSet, Policy};
use crate::zone::{Reading, ZoneTable};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pin {
    start: Hit,
    /// The instant that the policy would pick instead, in Unix seconds.
    replaced: i64,
}

impl Pin {
    /// The pin that a start needs, if it does.
    pub fn new(table: &ZoneTable, policy: Policy, start: i64) -> Option<Pin> {
        let start = show(table, start);
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

/// A set of instants with its first one pinned. Nobody asks about anything before the start.
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
