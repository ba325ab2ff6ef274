//! The dispatcher's decision and its ids, without a server: the very source files, compiled into this test.

#[path = "../../src/dispatch/decide.rs"]
mod decide;
#[path = "../../src/dispatch/id.rs"]
mod id;

use chrono::{DateTime, Utc};
use decide::{Decision, Due, EndReason, Then, decide};
use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Zone};
use std::sync::Arc;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// An action due at `next_run_at`, asked about at `now`.
struct Case {
    schedule: &'static str,
    ends_at: Option<&'static str>,
    next_run_at: &'static str,
    runs: (i64, Option<i64>),
    now: &'static str,
}

impl Case {
    fn decide(&self) -> Decision {
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
            run_count: self.runs.0,
            max_runs: self.runs.1,
            ends_at: bounds.ends_at,
        };
        decide(&due, at(self.now))
    }
}

const NOON: Case = Case {
    schedule: "0 12 * * *",
    ends_at: None,
    next_run_at: "2030-01-01T12:00:00Z",
    runs: (0, None),
    now: "2030-01-01T12:00:00Z",
};

fn fires(occurrence: &str, then: Then) -> Decision {
    Decision {
        fire: Some(at(occurrence)),
        then,
    }
}

#[test]
fn on_time_it_fires_and_waits_for_the_next() {
    let next = Then::WaitUntil(at("2030-01-02T12:00:00Z"));
    assert_eq!(NOON.decide(), fires("2030-01-01T12:00:00Z", next));
}

#[test]
fn a_month_of_missed_minutes_is_one_dispatch_for_the_latest() {
    let case = Case {
        schedule: "* * * * *",
        now: "2030-02-01T00:00:59Z",
        ..NOON
    };
    let next = Then::WaitUntil(at("2030-02-01T00:01:00Z"));
    assert_eq!(case.decide(), fires("2030-02-01T00:00:00Z", next));
}

#[test]
fn the_last_of_max_runs_fires_and_ends() {
    let case = Case {
        runs: (2, Some(3)),
        ..NOON
    };
    assert_eq!(
        case.decide(),
        fires("2030-01-01T12:00:00Z", Then::End(EndReason::Exhausted))
    );
    // Lowered below what has already run: it ends without another.
    let case = Case {
        runs: (3, Some(3)),
        ..NOON
    };
    assert_eq!(
        case.decide(),
        Decision {
            fire: None,
            then: Then::End(EndReason::Exhausted)
        }
    );
}

#[test]
fn an_occurrence_exactly_at_its_end_fires_even_if_seen_late() {
    let case = Case {
        ends_at: Some("2030-01-01T12:00:00Z"),
        now: "2030-01-05T00:00:00Z",
        ..NOON
    };
    assert_eq!(
        case.decide(),
        fires("2030-01-01T12:00:00Z", Then::End(EndReason::Expired))
    );
}

#[test]
fn an_occurrence_after_its_end_does_not_fire() {
    // ends_at was moved to before the next run by an edit that did not recompute it.
    let case = Case {
        ends_at: Some("2030-01-01T11:00:00Z"),
        ..NOON
    };
    assert_eq!(
        case.decide(),
        Decision {
            fire: None,
            then: Then::End(EndReason::Expired)
        }
    );
}

#[test]
fn one_time_is_over_after_it() {
    let case = Case {
        schedule: "at 2030-01-01T12:00:00Z",
        ..NOON
    };
    assert_eq!(
        case.decide(),
        fires("2030-01-01T12:00:00Z", Then::End(EndReason::NoNext))
    );
}

#[test]
fn end_reasons_are_stored_by_these_names() {
    let names = [EndReason::Exhausted, EndReason::Expired, EndReason::NoNext].map(EndReason::name);
    assert_eq!(names, ["exhausted", "expired", "no_next"]);
}
