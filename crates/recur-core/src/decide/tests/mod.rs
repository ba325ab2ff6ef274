//! Decisions about one action, each a case of a few fields.

mod completed;
mod due;
mod duplicates;
mod horizon;
mod staging;

use super::*;
use crate::policy::Misfire;
use recurrence::{Bounds, OnFold, OnGap, Schedule, Zone};
use std::sync::Arc;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// An action due at `next_run_at`, asked about at `now`.
#[derive(Clone, Copy)]
struct Case {
    schedule: &'static str,
    ends_at: Option<&'static str>,
    next_run_at: &'static str,
    /// The first and the last dispatch ahead.
    ahead: Option<(&'static str, &'static str)>,
    all_dispatched: Option<&'static str>,
    runs: (i64, Option<i64>),
    completed: Option<i64>,
    policy: Policy,
    unfinished: Unfinished,
    duplicates: Option<Duplicates<'static>>,
    share: usize,
    now: &'static str,
}

impl Case {
    /// The decision in [`Mode::Due`].
    fn decide(&self) -> Decision {
        self.answer(Mode::Due).unwrap()
    }

    fn stage(&self, until: &str) -> Option<Decision> {
        self.answer(Mode::Stage { until: at(until) })
    }

    fn answer(&self, mode: Mode) -> Option<Decision> {
        let bounds = Bounds {
            starts_at: Some(at("2030-01-01T00:00:00Z")),
            ends_at: self.ends_at.map(at),
            max_runs: None,
        };
        let schedule = Arc::new(Schedule::parse(self.schedule).unwrap());
        let recurrence = Recurrence::new(
            schedule,
            Zone::UTC,
            bounds,
            OnGap::default(),
            OnFold::default(),
        )
        .unwrap();
        let due = Due {
            recurrence: &recurrence,
            next_run_at: at(self.next_run_at),
            ahead: self.ahead.map(|(first, last)| Ahead {
                first: at(first),
                last: at(last),
            }),
            all_dispatched: self.all_dispatched.map(at),
            run_count: self.runs.0,
            max_runs: self.runs.1,
            completed: self.completed,
            policy: self.policy,
            unfinished: self.unfinished,
            duplicates: self.duplicates,
            share: self.share,
        };
        decide(&due, at(self.now), mode)
    }
}

const PLAIN: Policy = Policy {
    misfire: Misfire::Once,
    misfire_grace: None,
    catchup_limit: 100,
    overlap: Overlap::Allow,
    horizon: None,
};

const NOON: Case = Case {
    schedule: "0 12 * * *",
    ends_at: None,
    next_run_at: "2030-01-01T12:00:00Z",
    ahead: None,
    all_dispatched: None,
    runs: (0, None),
    completed: None,
    policy: PLAIN,
    unfinished: Unfinished {
        pending: false,
        running: false,
        stale: false,
    },
    duplicates: None,
    share: usize::MAX,
    now: "2030-01-01T12:00:00Z",
};

/// A whole month of missed minutes.
const MONTH: Case = Case {
    schedule: "* * * * *",
    now: "2030-01-31T12:00:30Z",
    ..NOON
};

fn wait(next: &str) -> Then {
    Then::Wait {
        next_run_at: at(next),
        due_at: at(next),
    }
}

fn fires(occurrences: &[&str], then: Then) -> Decision {
    Decision {
        fire: occurrences.iter().map(|text| at(text)).collect(),
        skipped: Vec::new(),
        cancels_previous: false,
        ahead: None,
        then,
    }
}

/// The same, with dispatches ahead of their time: the first of them, and the latest that has come due.
fn fires_ahead(occurrences: &[&str], first: &str, came_due: Option<&str>, then: Then) -> Decision {
    Decision {
        ahead: Some(StillAhead {
            first: at(first),
            came_due: came_due.map(at),
        }),
        ..fires(occurrences, then)
    }
}

fn skipped(reason: SkipReason, from: &str, until: &str, count: u64) -> Vec<Skipped> {
    vec![Skipped {
        reason,
        from: at(from),
        until: at(until),
        count,
    }]
}

#[test]
fn reasons_are_stored_by_these_names() {
    assert_eq!(EndReason::NAMES, ["exhausted", "expired", "no_next"]);
    let kinds: Vec<&str> = EndReason::ALL
        .iter()
        .map(|end| end.event_kind().as_str())
        .collect();
    assert_eq!(
        kinds,
        ["action.exhausted", "action.expired", "action.no_next"]
    );
    assert_eq!(
        SkipReason::NAMES,
        ["misfire", "overlap", "max_runs", "duplicate", "merged"]
    );
}
