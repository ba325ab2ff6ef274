//! Why a backfill has made no dispatch.

use chrono::{DateTime, SecondsFormat, Utc};
use recurrence::Bounds;
use std::fmt;

type Instant = DateTime<Utc>;

/// A backfill, as far as the reason depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Backfill {
    /// The first instant that it covers.
    pub from: Instant,
    /// The last instant that it covers.
    pub until: Instant,
    /// When the action starts and ends.
    pub bounds: Bounds,
    /// From then on, the schedule itself dispatches.
    pub next_run_at: Option<Instant>,
    /// How many occurrences it found, all with a dispatch.
    pub dispatched: usize,
}

/// Why there was nothing to backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nothing {
    /// Every occurrence has a dispatch.
    AllDispatched(usize),
    /// The action starts later.
    StartsLater(Instant),
    /// The action ended earlier.
    EndedEarlier(Instant),
    /// The schedule itself dispatches these occurrences.
    StillToCome(Instant),
    /// The schedule has no occurrence then.
    NoOccurrence,
    /// The action has had all runs that `max_runs` allows.
    NoRunLeft,
}

impl Backfill {
    /// Why this backfill has made no dispatch.
    ///
    /// ```
    /// use recur_core::backfill::{Backfill, Nothing};
    /// use recurrence::Bounds;
    ///
    /// let at = |text: &str| text.parse().unwrap();
    /// let backfill = Backfill {
    ///     from: at("2030-01-01T00:00:00Z"),
    ///     until: at("2030-01-02T00:00:00Z"),
    ///     bounds: Bounds { starts_at: Some(at("2030-02-01T00:00:00Z")), ..Bounds::default() },
    ///     next_run_at: None,
    ///     dispatched: 0,
    /// };
    /// assert_eq!(backfill.nothing().to_string(), "the action starts only at 2030-02-01T00:00:00Z");
    /// ```
    pub fn nothing(&self) -> Nothing {
        if self.dispatched > 0 {
            return Nothing::AllDispatched(self.dispatched);
        }
        let Bounds {
            starts_at, ends_at, ..
        } = self.bounds;
        if let Some(start) = starts_at.filter(|start| *start > self.until) {
            return Nothing::StartsLater(start);
        }
        if let Some(end) = ends_at.filter(|end| *end < self.from) {
            return Nothing::EndedEarlier(end);
        }
        match self.next_run_at.filter(|next| *next <= self.until) {
            Some(next) => Nothing::StillToCome(next),
            None => Nothing::NoOccurrence,
        }
    }
}

impl Nothing {
    /// What to do about it, if anything.
    pub fn hint(self) -> Option<&'static str> {
        match self {
            Nothing::StartsLater(_) => {
                Some("An earlier starts_at lets a backfill go further back.")
            }
            Nothing::NoOccurrence => Some("recur.preview shows the occurrences of a schedule."),
            Nothing::NoRunLeft => Some("Raise max_runs, or call it with beyond_max_runs => true."),
            _ => None,
        }
    }
}

impl fmt::Display for Nothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |at: &Instant| at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        match self {
            Nothing::AllDispatched(1) => f.write_str("the one occurrence has a dispatch already"),
            Nothing::AllDispatched(count) => {
                write!(f, "all {count} occurrences have a dispatch already")
            }
            Nothing::StartsLater(start) => write!(f, "the action starts only at {}", shown(start)),
            Nothing::EndedEarlier(end) => write!(f, "the action ended at {}", shown(end)),
            Nothing::StillToCome(next) => {
                write!(f, "from {} on, the schedule itself dispatches", shown(next))
            }
            Nothing::NoOccurrence => f.write_str("the schedule has no occurrence then"),
            Nothing::NoRunLeft => f.write_str("max_runs leaves no run"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Instant {
        text.parse().unwrap()
    }

    #[test]
    fn each_reason_has_its_words() {
        let plain = Backfill {
            from: at("2030-01-01T00:00:00Z"),
            until: at("2030-01-02T00:00:00Z"),
            bounds: Bounds::default(),
            next_run_at: None,
            dispatched: 0,
        };
        let bounds = |starts_at: Option<&str>, ends_at: Option<&str>| Bounds {
            starts_at: starts_at.map(at),
            ends_at: ends_at.map(at),
            max_runs: None,
        };
        let ended = bounds(None, Some("2029-12-31T00:00:00Z"));
        let started = bounds(Some("2030-01-02T00:00:00Z"), Some("2030-01-01T00:00:00Z"));
        let next_run_at = Some(at("2030-01-02T00:00:00Z"));
        let later = Some(at("2030-01-02T00:00:01Z"));
        for (backfill, words) in [
            (plain, "the schedule has no occurrence then"),
            (
                Backfill {
                    bounds: ended,
                    ..plain
                },
                "the action ended at 2029-12-31T00:00:00Z",
            ),
            // At the very edges, the bounds are no reason.
            (
                Backfill {
                    bounds: started,
                    ..plain
                },
                "the schedule has no occurrence then",
            ),
            (
                Backfill {
                    next_run_at,
                    ..plain
                },
                "from 2030-01-02T00:00:00Z on, the schedule itself dispatches",
            ),
            (
                Backfill {
                    next_run_at: later,
                    ..plain
                },
                "the schedule has no occurrence then",
            ),
            (
                Backfill {
                    dispatched: 1,
                    next_run_at,
                    ..plain
                },
                "the one occurrence has a dispatch already",
            ),
            (
                Backfill {
                    dispatched: 2,
                    ..plain
                },
                "all 2 occurrences have a dispatch already",
            ),
        ] {
            assert_eq!(backfill.nothing().to_string(), words);
        }
    }
}
