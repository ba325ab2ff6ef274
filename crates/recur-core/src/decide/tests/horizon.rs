//! Decisions about actions that dispatch ahead of their time.

use super::*;

#[test]
fn a_horizon_dispatches_ahead_and_looks_again_when_the_next_comes_near() {
    let policy = Policy {
        horizon: Some(Horizon {
            reach: TimeDelta::days(3),
            count: 1_000,
        }),
        ..PLAIN
    };
    // Looked at when it is created.
    let created = Case {
        policy,
        now: "2030-01-01T00:00:00Z",
        ..NOON
    };
    assert_eq!(
        created.decide(),
        fires_ahead(
            &[
                "2030-01-01T12:00:00Z",
                "2030-01-02T12:00:00Z",
                "2030-01-03T12:00:00Z"
            ],
            "2030-01-01T12:00:00Z",
            None,
            Then::Wait {
                next_run_at: at("2030-01-04T12:00:00Z"),
                due_at: at("2030-01-01T12:00:00Z"),
            }
        )
    );
    // Then one at a time.
    let later = Case {
        next_run_at: "2030-01-04T12:00:00Z",
        ahead: Some(("2030-01-01T12:00:00Z", "2030-01-03T12:00:00Z")),
        now: "2030-01-01T12:00:00Z",
        ..created
    };
    assert_eq!(
        later.decide(),
        fires_ahead(
            &["2030-01-04T12:00:00Z"],
            "2030-01-02T12:00:00Z",
            Some("2030-01-01T12:00:00Z"),
            Then::Wait {
                next_run_at: at("2030-01-05T12:00:00Z"),
                due_at: at("2030-01-02T12:00:00Z"),
            }
        )
    );
}

#[test]
fn an_instant_set_by_hand_is_dispatched_ahead_as_well() {
    // The next run was set by hand to ten past twelve: seen within the reach, and without one.
    let policy = Policy {
        horizon: Some(Horizon {
            reach: TimeDelta::hours(1),
            count: 1_000,
        }),
        ..PLAIN
    };
    let within_reach = Case {
        policy,
        next_run_at: "2030-01-01T12:10:00Z",
        now: "2030-01-01T12:05:00Z",
        ..NOON
    };
    assert_eq!(
        within_reach.decide(),
        fires_ahead(
            &["2030-01-01T12:10:00Z"],
            "2030-01-01T12:10:00Z",
            None,
            Then::Wait {
                next_run_at: at("2030-01-02T12:00:00Z"),
                due_at: at("2030-01-01T12:10:00Z"),
            }
        )
    );
    let too_early = Case {
        policy: PLAIN,
        ..within_reach
    };
    assert_eq!(too_early.decide(), fires(&[], wait("2030-01-01T12:10:00Z")));
}

#[test]
fn a_horizon_has_limits() {
    let horizon = |days, count| Policy {
        horizon: Some(Horizon {
            reach: TimeDelta::days(days),
            count,
        }),
        ..PLAIN
    };
    // By count: there is room again when the first of those ahead has come.
    let case = Case {
        policy: horizon(30, 2),
        now: "2030-01-01T00:00:00Z",
        ..NOON
    };
    assert_eq!(
        case.decide(),
        fires_ahead(
            &["2030-01-01T12:00:00Z", "2030-01-02T12:00:00Z"],
            "2030-01-01T12:00:00Z",
            None,
            Then::Wait {
                next_run_at: at("2030-01-03T12:00:00Z"),
                due_at: at("2030-01-01T12:00:00Z"),
            }
        )
    );
    // 50 at once; the rest at once after that.
    let case = Case {
        policy: horizon(100, 1_000),
        ..case
    };
    let decision = case.decide();
    assert_eq!(decision.fire.len(), 50);
    assert!(
        matches!(decision.then, Then::Wait { due_at, .. } if due_at <= at("2030-01-01T00:00:00Z"))
    );
    // max_runs counts those ahead as well.
    let case = Case {
        runs: (1, Some(3)),
        ..case
    };
    let decision = case.decide();
    assert_eq!(
        (decision.fire.len(), decision.then),
        (
            2,
            Then::Finish {
                due_at: at("2030-01-01T12:00:00Z")
            }
        )
    );
    // Whether it will overlap can't be known ahead.
    let case = Case {
        policy: Policy {
            overlap: Overlap::Skip,
            ..horizon(30, 1_000)
        },
        ..NOON
    };
    assert_eq!(
        case.decide(),
        fires(&["2030-01-01T12:00:00Z"], wait("2030-01-02T12:00:00Z"))
    );
}

#[test]
fn a_full_horizon_has_room_when_the_first_of_it_has_come() {
    let policy = Policy {
        horizon: Horizon::new(Some(TimeDelta::days(36_525)), None),
        ..PLAIN
    };
    // A thousand seconds lie ahead.
    let full = Case {
        schedule: "* * * * * *",
        policy,
        next_run_at: "2030-01-01T00:16:41Z",
        now: "2030-01-01T00:00:00Z",
        ..NOON
    };
    let wait = Then::Wait {
        next_run_at: at("2030-01-01T00:16:41Z"),
        due_at: at("2030-01-01T00:00:01Z"),
    };
    assert_eq!(full.decide(), fires(&[], wait));
    // Far from full: at once again, but not before what is due already.
    let empty = Case {
        next_run_at: "2030-01-01T00:00:01Z",
        ..full
    };
    let decision = empty.decide();
    assert_eq!(decision.fire.len(), 50);
    assert!(
        matches!(decision.then, Then::Wait { due_at, .. } if due_at == at("2030-01-01T00:00:00Z"))
    );
    // The share of the batch holds here, too.
    let decision = Case { share: 7, ..empty }.decide();
    assert_eq!(decision.fire.len(), 7);
}

#[test]
fn an_action_ends_when_nothing_of_what_was_ahead_is_unfinished() {
    let (first, last) = ("2030-01-01T12:00:00Z", "2030-01-03T12:00:00Z");
    for (max_runs, ends_at, reason) in [
        (Some(3), None, EndReason::Exhausted),
        (None, Some(last), EndReason::Expired),
    ] {
        let case = Case {
            ahead: Some((first, last)),
            all_dispatched: Some(last),
            ends_at,
            runs: (3, max_runs),
            now: "2030-01-01T11:59:59Z",
            ..NOON
        };
        let finish = |due_at| Then::Finish { due_at: at(due_at) };
        assert_eq!(
            case.decide(),
            fires_ahead(&[], first, None, finish(first)),
            "looked at too early"
        );
        let case = Case { now: first, ..case };
        let second = "2030-01-02T12:00:00Z";
        assert_eq!(
            case.decide(),
            fires_ahead(&[], second, Some(first), finish(second))
        );
        let case = Case {
            now: "2030-01-03T11:59:59Z",
            ..case
        };
        assert_eq!(
            case.decide(),
            fires_ahead(&[], last, Some(second), finish(last))
        );
        for now in [last, "2031-01-01T00:00:00Z"] {
            let case = Case { now, ..case };
            assert_eq!(case.decide(), fires(&[], Then::End(reason)));
        }
        // Looked at again while one is unfinished, as long after as the last is past.
        let pending = Unfinished {
            pending: true,
            ..Unfinished::default()
        };
        for (now, again) in [
            (last, "2030-01-03T12:00:10Z"),
            ("2030-01-03T12:05:00Z", "2030-01-03T12:10:00Z"),
            ("2030-01-05T12:00:00Z", "2030-01-05T13:00:00Z"),
        ] {
            for ahead in [case.ahead, None] {
                let case = Case {
                    now,
                    ahead,
                    unfinished: pending,
                    ..case
                };
                assert_eq!(case.decide(), fires(&[], finish(again)));
            }
        }
    }
}

#[test]
fn what_is_unfinished_is_asked_when_all_is_dispatched() {
    let policy = Policy {
        horizon: Horizon::new(Some(TimeDelta::days(1)), None),
        ..PLAIN
    };
    let case = Case {
        runs: (2, Some(3)),
        ..NOON
    };
    let noon = case.now;
    let plain = fires(&[noon], Then::End(EndReason::Exhausted));
    assert_eq!(case.decide(), plain);
    let finish = fires(&[noon], Then::Finish { due_at: at(noon) });
    assert_eq!(Case { policy, ..case }.decide(), finish);
    let ahead = Some(("2029-12-31T12:00:00Z", "2029-12-31T12:00:00Z"));
    let case = Case { ahead, ..case };
    assert_eq!(case.decide().then, finish.then);
}

#[test]
fn what_is_ahead_is_not_missed_in_an_outage() {
    // Three days were dispatched ahead; the server came back after five.
    let case = Case {
        next_run_at: "2030-01-04T12:00:00Z",
        ahead: Some(("2030-01-01T12:00:00Z", "2030-01-03T12:00:00Z")),
        now: "2030-01-05T13:00:00Z",
        ..NOON
    };
    assert_eq!(
        case.decide(),
        Decision {
            skipped: skipped(
                SkipReason::Misfire,
                "2030-01-04T12:00:00Z",
                "2030-01-04T12:00:00Z",
                1
            ),
            ..fires(&["2030-01-05T12:00:00Z"], wait("2030-01-06T12:00:00Z"))
        }
    );
    // Seen on the second day.
    let case = Case {
        now: "2030-01-02T13:00:00Z",
        ..case
    };
    assert_eq!(
        case.decide(),
        fires_ahead(
            &[],
            "2030-01-03T12:00:00Z",
            Some("2030-01-02T12:00:00Z"),
            Then::Wait {
                next_run_at: at("2030-01-04T12:00:00Z"),
                due_at: at("2030-01-03T12:00:00Z"),
            }
        )
    );
    // Nor is it staged.
    assert_eq!(case.stage("2030-01-04T12:00:00Z"), None);
}
