//! Decisions about actions that are dispatched ahead of an instant at which many are due.

use super::*;

/// Two seconds before noon.
const BEFORE: Case = Case {
    now: "2030-01-01T11:59:58Z",
    ..NOON
};

#[test]
fn the_occurrences_up_to_the_instant_are_staged() {
    let next = wait("2030-01-02T12:00:00Z");
    assert_eq!(
        BEFORE.stage("2030-01-01T12:00:00Z"),
        Some(fires(&["2030-01-01T12:00:00Z"], next))
    );
    let seconds = Case {
        schedule: "* * * * * *",
        next_run_at: "2030-01-01T11:59:59Z",
        ..BEFORE
    };
    assert_eq!(
        seconds.stage("2030-01-01T12:00:00Z"),
        Some(fires(
            &["2030-01-01T11:59:59Z", "2030-01-01T12:00:00Z"],
            wait("2030-01-01T12:00:01Z")
        ))
    );
}

#[test]
fn the_staged_decision_is_that_of_the_instant() {
    for misfire in Misfire::ALL {
        for grace in [None, Some(TimeDelta::zero()), Some(TimeDelta::hours(1))] {
            let policy = Policy {
                misfire: *misfire,
                misfire_grace: grace,
                ..PLAIN
            };
            let runs = (3, Some(10));
            let at_the_instant = Case {
                policy,
                runs,
                ..NOON
            };
            let before = Case {
                policy,
                runs,
                ..BEFORE
            };
            assert_eq!(
                before.stage(NOON.now),
                Some(at_the_instant.decide()),
                "{misfire} {grace:?}"
            );
        }
    }
}

#[test]
fn actions_that_may_overlap_only_under_conditions_are_left_to_the_instant() {
    for overlap in Overlap::ALL {
        let policy = Policy {
            overlap: *overlap,
            ..PLAIN
        };
        let staged = Case { policy, ..BEFORE }.stage(NOON.now);
        assert_eq!(staged.is_some(), *overlap == Overlap::Allow, "{overlap}");
    }
}

#[test]
fn actions_with_a_horizon_are_left_to_themselves() {
    let policy = Policy {
        horizon: Horizon::new(Some(TimeDelta::seconds(1)), None),
        ..PLAIN
    };
    assert_eq!(Case { policy, ..BEFORE }.stage(NOON.now), None);
}

#[test]
fn no_action_ends_ahead_of_its_last_run() {
    let last = [
        Case {
            runs: (2, Some(3)),
            ..BEFORE
        },
        Case {
            ends_at: Some("2030-01-01T12:00:00Z"),
            ..BEFORE
        },
        Case {
            schedule: "at 2030-01-01T12:00:00Z",
            ..BEFORE
        },
        // Ended already, by an edit.
        Case {
            runs: (3, Some(3)),
            ..BEFORE
        },
        Case {
            ends_at: Some("2030-01-01T11:00:00Z"),
            ..BEFORE
        },
    ];
    for case in last {
        assert_eq!(case.stage(NOON.now), None);
        let at_the_instant = Case {
            now: NOON.now,
            ..case
        };
        assert!(matches!(at_the_instant.decide().then, Then::End(_)));
    }
    // The one before the last is staged.
    let before_last = Case {
        runs: (1, Some(3)),
        ..BEFORE
    };
    assert!(before_last.stage(NOON.now).is_some());
}

#[test]
fn actions_that_are_due_already_are_not_staged() {
    // An action that failed: due again at noon, with an occurrence that has been missed.
    let failed = Case {
        next_run_at: "2030-01-01T11:00:00Z",
        ..BEFORE
    };
    assert_eq!(failed.stage(NOON.now), None);
    let now = Case {
        now: NOON.now,
        ..BEFORE
    };
    assert_eq!(now.stage("2030-01-01T12:00:01Z"), None);
}

#[test]
fn actions_that_are_due_after_the_instant_are_not_staged() {
    assert_eq!(BEFORE.stage("2030-01-01T11:59:59.999999Z"), None);
    assert_eq!(BEFORE.stage("2030-01-01T11:00:00Z"), None);
}

#[test]
fn at_most_fifty_are_staged_and_the_next_stays_due_at_its_time() {
    let seconds = Case {
        schedule: "* * * * * *",
        next_run_at: "2030-01-01T11:59:59Z",
        ..BEFORE
    };
    let decision = seconds.stage("2030-01-01T13:00:00Z").unwrap();
    assert_eq!(decision.fire.len(), MOST_AHEAD);
    assert_eq!(decision.then, wait("2030-01-01T12:00:49Z"));
}

#[test]
fn an_instant_set_by_hand_is_staged() {
    let by_hand = Case {
        next_run_at: "2030-01-01T11:59:59Z",
        ..BEFORE
    };
    assert_eq!(
        by_hand.stage("2030-01-01T11:59:59Z"),
        Some(fires(
            &["2030-01-01T11:59:59Z"],
            wait("2030-01-01T12:00:00Z")
        ))
    );
}
