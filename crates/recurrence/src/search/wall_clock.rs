//! Wall-clock readings resolved to instants, under a policy for clock changes.
//!
//! A later reading never resolves to an earlier instant, under any policy. So the first instant
//! after x comes from the first reading after the one at x, except where x itself is inside a
//! repeated hour.

use super::{Cause, CivilSet, Hit, InstantSet, Policy};
use crate::civil::Civil;
use crate::policy::{OnFold, OnGap};
use crate::zone::{Reading, Transition, ZoneTable};

/// The occurrence at an instant, with what the wall clock shows then.
pub(crate) fn hit_at(table: &ZoneTable, at: i64) -> Hit {
    let nearby = NearbyChanges::of(table, at);
    let cause = if nearby.second_pass().is_some() {
        Cause::SecondOfFold
    } else if nearby.first_pass().is_some() {
        Cause::FirstOfFold
    } else {
        Cause::Plain
    };
    Hit {
        at,
        civil: nearby.local,
        cause,
    }
}

/// A set of readings on a zone's wall clock.
pub(crate) struct WallClock<'a, S> {
    pub set: &'a S,
    pub table: &'a ZoneTable,
    pub policy: Policy,
}

/// The clock changes before and after an instant.
struct NearbyChanges<'a> {
    /// The reading at the instant.
    local: Civil,
    previous: Option<&'a Transition>,
    next: Option<&'a Transition>,
}

impl<'a> NearbyChanges<'a> {
    fn of(table: &'a ZoneTable, instant: i64) -> NearbyChanges<'a> {
        let index = table.index_after(instant);
        let transitions = table.transitions();
        NearbyChanges {
            local: Civil(instant + i64::from(table.offset_before(index))),
            previous: index.checked_sub(1).and_then(|i| transitions.get(i)),
            next: transitions.get(index),
        }
    }

    /// Whether the clocks show the reading once, between the two changes.
    fn is_between(&self, civil: Civil) -> bool {
        self.next.is_none_or(|t| civil < t.low()) && self.previous.is_none_or(|t| civil > t.high())
    }

    /// The repeated range whose second pass the instant is in.
    fn second_pass(&self) -> Option<&'a Transition> {
        self.previous
            .filter(|t| !t.is_gap() && self.local < t.high())
    }

    /// The repeated range whose first pass the instant is in.
    fn first_pass(&self) -> Option<&'a Transition> {
        self.next.filter(|t| !t.is_gap() && self.local >= t.low())
    }
}

fn first_of_fold(t: &Transition, civil: Civil) -> Hit {
    Hit {
        at: civil.0 - i64::from(t.before),
        civil,
        cause: Cause::FirstOfFold,
    }
}

fn second_of_fold(t: &Transition, civil: Civil) -> Hit {
    Hit {
        at: civil.0 - i64::from(t.after),
        civil,
        cause: Cause::SecondOfFold,
    }
}

fn plain(at: i64, civil: Civil) -> Hit {
    Hit {
        at,
        civil,
        cause: Cause::Plain,
    }
}

impl<S: CivilSet> InstantSet for WallClock<'_, S> {
    fn next_after(&self, instant: i64) -> Option<Hit> {
        let WallClock { set, table, policy } = *self;
        let nearby = NearbyChanges::of(table, instant);
        let mut from = Civil(nearby.local.0 + 1);
        if let Some(t) = nearby.second_pass() {
            if policy.on_fold == OnFold::First {
                from = t.high();
            } else {
                let civil = set.at_or_after(from)?;
                if civil < t.high() {
                    return Some(second_of_fold(t, civil));
                }
                from = civil;
            }
        } else if let Some(t) = nearby.first_pass() {
            match policy.on_fold {
                OnFold::First => {}
                OnFold::Second => from = t.low(),
                OnFold::Both => {
                    // The rest of the first pass, then the whole of the second.
                    let rest = set.at_or_after(from).filter(|civil| *civil < t.high());
                    if let Some(civil) = rest {
                        return Some(first_of_fold(t, civil));
                    }
                    let again = set.at_or_after(t.low())?;
                    if again < t.high() {
                        return Some(second_of_fold(t, again));
                    }
                    from = again;
                }
            }
        }
        loop {
            let civil = set.at_or_after(from)?;
            if nearby.is_between(civil) {
                return Some(plain(instant + (civil.0 - nearby.local.0), civil));
            }
            match table.read(civil) {
                Reading::Once(at) => return Some(plain(at, civil)),
                Reading::Missing(t) if policy.on_gap == OnGap::Skip => from = t.high(),
                Reading::Missing(t) => return Some(moved(t, civil)),
                Reading::Twice(t) if policy.on_fold == OnFold::Second => {
                    return Some(second_of_fold(t, civil));
                }
                Reading::Twice(t) => return Some(first_of_fold(t, civil)),
            }
        }
    }

    fn last_at_or_before(&self, instant: i64) -> Option<Hit> {
        let WallClock { set, table, policy } = *self;
        let nearby = NearbyChanges::of(table, instant);
        let mut from = nearby.local;
        if let Some(t) = nearby.second_pass() {
            match policy.on_fold {
                OnFold::First => from = Civil(t.high().0 - 1),
                OnFold::Second => {}
                OnFold::Both => {
                    let rest = set.at_or_before(from).filter(|civil| *civil >= t.low());
                    if let Some(civil) = rest {
                        return Some(second_of_fold(t, civil));
                    }
                    let again = set.at_or_before(Civil(t.high().0 - 1))?;
                    if again >= t.low() {
                        return Some(first_of_fold(t, again));
                    }
                    from = again;
                }
            }
        } else if let Some(t) = nearby.first_pass() {
            if policy.on_fold == OnFold::Second {
                from = Civil(t.low().0 - 1);
            } else {
                let civil = set.at_or_before(from)?;
                if civil >= t.low() {
                    return Some(first_of_fold(t, civil));
                }
                from = civil;
            }
        }
        loop {
            let civil = set.at_or_before(from)?;
            if nearby.is_between(civil) {
                return Some(plain(instant + (civil.0 - nearby.local.0), civil));
            }
            match table.read(civil) {
                Reading::Once(at) => {
                    // The first instant after a gap may also stand for missing readings. Both
                    // directions of search then report the earliest of them.
                    let gap = gap_that_ends_at(table, at, civil);
                    if policy.on_gap == OnGap::RollForward
                        && let Some(t) = gap
                        && let Some(hit) = earliest_moved(set, t)
                    {
                        return Some(hit);
                    }
                    return Some(plain(at, civil));
                }
                Reading::Missing(t) if policy.on_gap == OnGap::Skip => from = Civil(t.low().0 - 1),
                Reading::Missing(t) => return earliest_moved(set, t),
                Reading::Twice(t) if policy.on_fold == OnFold::First => {
                    return Some(first_of_fold(t, civil));
                }
                Reading::Twice(t) => return Some(second_of_fold(t, civil)),
            }
        }
    }

    fn count_between(&self, after: i64, until: i64, cap: u64) -> u64 {
        let WallClock { set, table, policy } = *self;
        let mut count = 0;
        let mut start = after + 1;
        let mut index = table.index_after(after);
        while start <= until && count < cap {
            let offset = i64::from(table.offset_before(index));
            let previous = index
                .checked_sub(1)
                .and_then(|i| table.transitions().get(i));
            let next = table.transitions().get(index).filter(|t| t.at <= until);
            let end = next.map_or(until, |t| t.at - 1);
            let mut first = Civil(start + offset);
            let mut last = Civil(end + offset);
            if let Some(t) = previous.filter(|t| !t.is_gap())
                && policy.on_fold == OnFold::First
            {
                first = first.max(t.high());
            }
            if let Some(t) = table.transitions().get(index).filter(|t| !t.is_gap())
                && policy.on_fold == OnFold::Second
            {
                last = last.min(Civil(t.low().0 - 1));
            }
            if first <= last {
                count += set.count(first, last, cap - count);
            }
            let Some(t) = next else { break };
            if policy.on_gap == OnGap::RollForward
                && t.is_gap()
                && earliest_moved(set, t).is_some()
                && set.at_or_after(t.high()) != Some(t.high())
            {
                count += 1;
            }
            start = t.at;
            index += 1;
        }
        count.min(cap)
    }
}

fn moved(t: &Transition, wanted: Civil) -> Hit {
    Hit {
        at: t.at,
        civil: t.high(),
        cause: Cause::MovedOutOfGap { wanted },
    }
}

fn earliest_moved(set: &impl CivilSet, t: &Transition) -> Option<Hit> {
    set.at_or_after(t.low())
        .filter(|civil| *civil < t.high())
        .map(|civil| moved(t, civil))
}

fn gap_that_ends_at(table: &ZoneTable, at: i64, civil: Civil) -> Option<&Transition> {
    table
        .index_after(at)
        .checked_sub(1)
        .and_then(|i| table.transitions().get(i))
        .filter(|t| t.is_gap() && t.high() == civil)
}
