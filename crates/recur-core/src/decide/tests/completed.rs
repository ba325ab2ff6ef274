//! `count_runs` completed: there are never more completed runs than `max_runs`.

use super::*;

/// Three runs of which two are over, and one dispatch is unfinished: there is no room.
const FULL: Case = Case {
    runs: (3, Some(3)),
    completed: Some(2),
    ..NOON
};

#[test]
fn an_unfinished_run_takes_a_place_and_the_action_goes_on() {
    let tomorrow = "2030-01-02T12:00:00Z";
    assert_eq!(
        FULL.decide(),
        Decision {
            skipped: skipped(SkipReason::MaxRuns, FULL.next_run_at, FULL.next_run_at, 1),
            ..fires(&[], wait(tomorrow))
        }
    );
    // It has failed: there is a place again.
    let failed = Case {
        runs: (2, Some(3)),
        ..FULL
    };
    assert_eq!(failed.decide(), fires(&[NOON.next_run_at], wait(tomorrow)));
    // It is completed.
    let completed = Case {
        completed: Some(3),
        ..FULL
    };
    assert_eq!(completed.decide().then, Then::End(EndReason::Exhausted));
    assert!(completed.decide().fire.is_empty());
}

#[test]
fn of_what_was_missed_only_as_many_fire_as_there_are_places() {
    let missed = Case {
        policy: Policy {
            misfire: Misfire::All,
            ..PLAIN
        },
        runs: (1, Some(3)),
        completed: Some(0),
        now: "2030-01-04T13:00:00Z",
        ..NOON
    };
    assert_eq!(
        missed.decide(),
        Decision {
            skipped: skipped(
                SkipReason::MaxRuns,
                "2030-01-03T12:00:00Z",
                "2030-01-04T12:00:00Z",
                2
            ),
            ..fires(
                &["2030-01-01T12:00:00Z", "2030-01-02T12:00:00Z"],
                wait("2030-01-05T12:00:00Z")
            )
        }
    );
}

#[test]
fn a_horizon_that_is_full_of_last_runs_is_looked_at_when_one_comes_due() {
    let ahead = Case {
        policy: Policy {
            horizon: Horizon::new(Some(TimeDelta::days(10)), None),
            ..PLAIN
        },
        runs: (0, Some(2)),
        completed: Some(0),
        now: "2030-01-01T10:00:00Z",
        ..NOON
    };
    let first = "2030-01-01T12:00:00Z";
    let then = Then::Wait {
        next_run_at: at("2030-01-03T12:00:00Z"),
        due_at: at(first),
    };
    assert_eq!(
        ahead.decide(),
        fires_ahead(&[first, "2030-01-02T12:00:00Z"], first, None, then)
    );
}

#[test]
fn without_another_occurrence_the_action_ends_like_any_other() {
    let last = Case {
        ends_at: Some("2030-01-01T13:00:00Z"),
        ..FULL
    };
    assert_eq!(last.decide().then, Then::End(EndReason::Expired));
}

#[test]
fn it_is_not_staged() {
    let ahead = Case {
        now: "2030-01-01T11:59:59Z",
        runs: (0, Some(9)),
        completed: Some(0),
        ..NOON
    };
    assert_eq!(ahead.stage("2030-01-01T12:00:01Z"), None);
    let unlimited = Case {
        runs: (0, None),
        ..ahead
    };
    assert!(unlimited.stage("2030-01-01T12:00:01Z").is_some());
}
