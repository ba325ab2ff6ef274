//! A rule set compiled for its anchor.

use super::RuleSet;
use super::error::RuleError;
use super::rule::{End, Freq};
use super::search::{LAST_TIME, MAX_STEPS, Pattern, Search};
use super::stamp::Stamp;
use crate::civil::Civil;

/// Steps for finding the last occurrence of a COUNT, all occurrences together: a few milliseconds.
const MAX_COUNT_STEPS: u32 = 100_000;

/// A [`RuleSet`] with its anchor, for searches in both directions. See [`RuleSet`] for an example.
#[derive(Clone, Debug)]
pub struct CompiledRuleSet {
    pub(super) pattern: Pattern,
    /// The rule's first occurrence and a bound of its last; `None` when it has no occurrence.
    pub(super) span: Option<(Civil, Civil)>,
    /// The local times of EXDATE and RDATE, sorted, each once.
    pub(super) excluded: Vec<Civil>,
    pub(super) added: Vec<Civil>,
    stepping: bool,
}

impl CompiledRuleSet {
    pub(super) fn new(
        set: &RuleSet,
        anchor: Civil,
        local: impl Fn(i64) -> Civil,
    ) -> Result<Self, RuleError> {
        let pattern = Pattern::new(&set.rule, anchor);
        let end = match set.rule.end {
            End::Until(until) => until.civil(&local).min(LAST_TIME),
            _ => LAST_TIME,
        };
        let first = if pattern.is_impossible() {
            None
        } else {
            Search::new(&pattern, MAX_STEPS).at_or_after(anchor, end)
        };
        let span = match (first, set.rule.end) {
            (Some(first), End::Count(count)) => Some((first, last_of(&pattern, first, count)?)),
            (first, _) => first.map(|first| (first, end)),
        };
        // `NamedInstants` applies the times in UTC.
        let civil = |stamps: &[Stamp]| {
            let local = stamps.iter().filter_map(|stamp| match *stamp {
                Stamp::Local(civil) => Some(civil),
                Stamp::Utc(_) => None,
            });
            local.collect::<Vec<Civil>>()
        };
        Ok(CompiledRuleSet {
            pattern,
            span,
            excluded: civil(&set.excluded),
            // Nothing occurs before the anchor, RDATE included.
            added: civil(&set.added)
                .into_iter()
                .filter(|time| *time >= anchor)
                .collect(),
            stepping: set.rule.freq >= Freq::Hourly,
        })
    }

    /// Whether the rule steps through the day, with a FREQ of HOURLY, MINUTELY or SECONDLY.
    pub fn is_stepping(&self) -> bool {
        self.stepping
    }

    /// The first occurrence at or after a wall-clock time.
    pub fn next_at_or_after(&self, at: Civil) -> Option<Civil> {
        let mut search = Search::new(&self.pattern, MAX_STEPS);
        let mut at = at;
        loop {
            let ruled = self.span.and_then(|(first, end)| match at {
                at if at <= first => Some(first),
                at if at > end => None,
                at => search.at_or_after(at, end),
            });
            let added = self
                .added
                .get(self.added.partition_point(|time| *time < at))
                .copied();
            let found = earliest(ruled, added)?;
            if !self.is_excluded(found) {
                return Some(found);
            }
            at = Civil(found.0 + 1);
        }
    }

    /// The last occurrence at or before a wall-clock time.
    pub fn last_at_or_before(&self, at: Civil) -> Option<Civil> {
        let mut search = Search::new(&self.pattern, MAX_STEPS);
        let mut at = at;
        loop {
            let ruled = self.span.and_then(|(first, end)| match at {
                at if at < first => None,
                at => search.at_or_before(at.min(end), first),
            });
            let added = self.added[..self.added.partition_point(|time| *time <= at)]
                .last()
                .copied();
            let found = ruled.max(added)?;
            if !self.is_excluded(found) {
                return Some(found);
            }
            at = Civil(found.0 - 1);
        }
    }

    pub(super) fn is_excluded(&self, at: Civil) -> bool {
        self.excluded.binary_search(&at).is_ok()
    }
}

fn earliest(a: Option<Civil>, b: Option<Civil>) -> Option<Civil> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The last of `count` occurrences, or of all where there are fewer.
fn last_of(pattern: &Pattern, first: Civil, count: u32) -> Result<Civil, RuleError> {
    let mut search = Search::new(pattern, MAX_COUNT_STEPS);
    let mut last = first;
    for _ in 1..count {
        match search.at_or_after(Civil(last.0 + 1), LAST_TIME) {
            Some(next) => last = next,
            None if search.steps_left == 0 => return Err(RuleError::CountOutOfReach { count }),
            None => break,
        }
    }
    Ok(last)
}
