//! Instants that an RRULE's EXDATE and RDATE lines name in UTC.
//!
//! A time with a `Z` is one instant. As a wall-clock reading it would lose its pass of a repeated
//! hour, and would miss an occurrence that a gap has moved. So these times are removed from, and
//! added to, the instants that the rest of the rule yields.

use crate::rrule::{RuleSet, Stamp};
use crate::search::wall_clock::hit_at;
use crate::search::{Hit, InstantSet};
use crate::zone::ZoneTable;

/// The times of EXDATE and RDATE that are in UTC, in Unix seconds, sorted. What is both added and
/// removed is removed.
#[derive(Clone, Debug)]
pub(crate) struct NamedInstants {
    removed: Vec<i64>,
    added: Vec<i64>,
}

impl NamedInstants {
    /// The instants that a rule set names; `None` where it names none.
    pub fn of(rules: &RuleSet) -> Option<Box<NamedInstants>> {
        let instants = |stamps: &[Stamp]| {
            let utc = stamps.iter().filter_map(|stamp| match *stamp {
                Stamp::Utc(instant) => Some(instant),
                Stamp::Local(_) => None,
            });
            utc.collect::<Vec<i64>>()
        };
        let removed = instants(rules.excluded());
        let mut added = instants(rules.added());
        added.retain(|at| removed.binary_search(at).is_err());
        let is_empty = removed.is_empty() && added.is_empty();
        (!is_empty).then(|| Box::new(NamedInstants { removed, added }))
    }
}

/// A set of instants with the named ones removed and added.
pub(crate) struct WithNamed<'a> {
    pub set: &'a dyn InstantSet,
    pub named: &'a NamedInstants,
    pub table: &'a ZoneTable,
}

impl WithNamed<'_> {
    fn is_removed(&self, at: i64) -> bool {
        self.named.removed.binary_search(&at).is_ok()
    }

    /// Whether the set holds an instant, before any is removed or added.
    fn holds(&self, at: i64) -> bool {
        let hit = self.set.last_at_or_before(at);
        hit.is_some_and(|hit| hit.at == at)
    }
}

impl InstantSet for WithNamed<'_> {
    fn next_after(&self, instant: i64) -> Option<Hit> {
        let mut found = self.set.next_after(instant);
        while let Some(hit) = found.filter(|hit| self.is_removed(hit.at)) {
            found = self.set.next_after(hit.at);
        }
        let index = self.named.added.partition_point(|at| *at <= instant);
        match (found, self.named.added.get(index)) {
            (Some(hit), Some(added)) if hit.at <= *added => Some(hit),
            (_, Some(added)) => Some(hit_at(self.table, *added)),
            (found, None) => found,
        }
    }

    fn last_at_or_before(&self, instant: i64) -> Option<Hit> {
        let mut found = self.set.last_at_or_before(instant);
        while let Some(hit) = found.filter(|hit| self.is_removed(hit.at)) {
            found = self.set.last_at_or_before(hit.at - 1);
        }
        let index = self.named.added.partition_point(|at| *at <= instant);
        match (found, self.named.added[..index].last()) {
            (Some(hit), Some(added)) if hit.at >= *added => Some(hit),
            (_, Some(added)) => Some(hit_at(self.table, *added)),
            (found, None) => found,
        }
    }

    fn count_between(&self, after: i64, until: i64, cap: u64) -> u64 {
        let count = |instants: &[i64], held: bool| {
            let in_range = instants.iter().filter(|at| after < **at && **at <= until);
            in_range.filter(|at| self.holds(**at) == held).count() as u64
        };
        let removed = count(&self.named.removed, true);
        let added = count(&self.named.added, false);
        let whole = self
            .set
            .count_between(after, until, cap.saturating_add(removed));
        (whole.saturating_sub(removed) + added).min(cap)
    }
}
