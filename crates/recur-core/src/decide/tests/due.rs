//! Decisions about actions that are due.

use super::*;
use std::time::{Duration, Instant as Stopwatch};

#[test]
fn on_time_it_fires_and_waits_for_the_next() {
    let next = wait("2030-01-02T12:00:00Z");
    assert_eq!(NOON.decide(), fires(&["2030-01-01T12:00:00Z"], next));
}

#[test]
fn once_a_month_of_missed_minutes_is_one_dispatch_for_the_latest() {
    let decision = MONTH.decide();
    assert_eq!(
        decision,
        Decision {
            skipped: skipped(
                SkipReason::Misfire,
                "2030-01-01T12:00:00Z",
                "2030-01-31T11:59:00Z",
                43_200
            ),
            ..fires(&["2030-01-31T12:00:00Z"], wait("2030-01-31T12:01:00Z"))
        }
    );
}

#[test]
fn once_with_a_grace_drops_even_the_latest_when_it_is_too_old() {
    let policy = Policy {
        misfire_grace: Some(TimeDelta::seconds(29)),
        ..PLAIN
    };
    assert_eq!(
        Case { policy, ..MONTH }.decide(),
        Decision {
            skipped: skipped(
                SkipReason::Misfire,
                "2030-01-01T12:00:00Z",
                "2030-01-31T12:00:00Z",
                43_201
            ),
            ..fires(&[], wait("2030-01-31T12:01:00Z"))
        }
    );
    // Exactly as old as it may be.
    let policy = Policy {
        misfire_grace: Some(TimeDelta::seconds(30)),
        ..PLAIN
    };
    assert_eq!(
        Case { policy, ..MONTH }.decide().fire,
        [at("2030-01-31T12:00:00Z")]
    );
}

#[test]
fn skip_fires_the_latest_if_it_is_no_older_than_the_grace() {
    let policy = Policy {
        misfire: Misfire::Skip,
        ..PLAIN
    };
    assert_eq!(
        Case { policy, ..MONTH }.decide(),
        Decision {
            skipped: skipped(
                SkipReason::Misfire,
                "2030-01-01T12:00:00Z",
                "2030-01-31T11:59:00Z",
                43_200
            ),
            ..fires(&["2030-01-31T12:00:00Z"], wait("2030-01-31T12:01:00Z"))
        }
    );
    let policy = Policy {
        misfire_grace: Some(TimeDelta::minutes(3)),
        ..policy
    };
    // Of three within the grace, the latest.
    assert_eq!(
        Case { policy, ..MONTH }.decide(),
        Decision {
            skipped: skipped(
                SkipReason::Misfire,
                "2030-01-01T12:00:00Z",
                "2030-01-31T11:59:00Z",
                43_200
            ),
            ..fires(&["2030-01-31T12:00:00Z"], wait("2030-01-31T12:01:00Z"))
        }
    );
    // Seen in time, nothing is skipped.
    let case = Case { policy, ..NOON };
    assert_eq!(
        case.decide(),
        fires(&["2030-01-01T12:00:00Z"], wait("2030-01-02T12:00:00Z"))
    );
    // Later than the grace, and nothing else due: skipped, with its reason.
    let case = Case {
        now: "2030-01-01T12:03:00.000001Z",
        ..case
    };
    assert_eq!(
        case.decide(),
        Decision {
            skipped: skipped(
                SkipReason::Misfire,
                "2030-01-01T12:00:00Z",
                "2030-01-01T12:00:00Z",
                1
            ),
            ..fires(&[], wait("2030-01-02T12:00:00Z"))
        }
    );
}

#[test]
fn all_keeps_the_newest_and_fires_the_oldest_of_them_first() {
    let policy = Policy {
        misfire: Misfire::All,
        catchup_limit: 3,
        ..PLAIN
    };
    let kept = [
        "2030-01-31T11:58:00Z",
        "2030-01-31T11:59:00Z",
        "2030-01-31T12:00:00Z",
    ];
    let older = || {
        skipped(
            SkipReason::Misfire,
            "2030-01-01T12:00:00Z",
            "2030-01-31T11:57:00Z",
            43_198,
        )
    };
    let case = Case { policy, ..MONTH };
    assert_eq!(
        case.decide(),
        Decision {
            skipped: older(),
            ..fires(&kept, wait("2030-01-31T12:01:00Z"))
        }
    );
    // A decision that may fire two drops as many; the next one finds what was kept, and drops nothing.
    let case = Case { share: 2, ..case };
    assert_eq!(
        case.decide(),
        Decision {
            skipped: older(),
            ..fires(&kept[..2], wait(kept[2]))
        }
    );
    let next = Case {
        next_run_at: kept[2],
        ..case
    };
    assert_eq!(
        next.decide(),
        fires(&kept[2..], wait("2030-01-31T12:01:00Z"))
    );
    // As many as are allowed.
    let case = Case {
        next_run_at: kept[0],
        share: usize::MAX,
        ..case
    };
    assert_eq!(case.decide().skipped, []);
    // The grace bounds it.
    let policy = Policy {
        misfire_grace: Some(TimeDelta::seconds(90)),
        ..policy
    };
    assert_eq!(
        Case { policy, ..MONTH }.decide(),
        Decision {
            skipped: skipped(
                SkipReason::Misfire,
                "2030-01-01T12:00:00Z",
                "2030-01-31T11:58:00Z",
                43_199
            ),
            ..fires(&kept[1..], wait("2030-01-31T12:01:00Z"))
        }
    );
}

#[test]
fn an_instant_set_by_hand_is_the_first_to_be_dropped() {
    let case = Case {
        policy: Policy {
            misfire: Misfire::All,
            catchup_limit: 2,
            ..PLAIN
        },
        next_run_at: "2030-01-01T12:00:10.5Z",
        now: "2030-01-01T12:02:30Z",
        ..MONTH
    };
    assert_eq!(
        case.decide(),
        Decision {
            skipped: skipped(
                SkipReason::Misfire,
                "2030-01-01T12:00:10.5Z",
                "2030-01-01T12:00:10.5Z",
                1
            ),
            ..fires(
                &["2030-01-01T12:01:00Z", "2030-01-01T12:02:00Z"],
                wait("2030-01-01T12:03:00Z")
            )
        }
    );
}

#[test]
fn a_long_outage_is_not_walked_through() {
    let century = Case {
        schedule: "* * * * * *",
        next_run_at: "2030-01-01T00:00:00Z",
        now: "2130-01-01T00:00:00Z",
        ..NOON
    };
    for misfire in [Misfire::Once, Misfire::Skip, Misfire::All] {
        let policy = Policy { misfire, ..PLAIN };
        let started = Stopwatch::now();
        let decision = Case { policy, ..century }.decide();
        // Three thousand million occurrences; walking would take minutes.
        assert!(started.elapsed() < Duration::from_secs(5));
        assert!(decision.skipped[0].count >= 10_000_000);
    }
}

#[test]
fn the_last_of_max_runs_fires_and_ends() {
    let exhausted = Then::End(EndReason::Exhausted);
    let case = Case {
        runs: (2, Some(3)),
        ..NOON
    };
    assert_eq!(case.decide(), fires(&["2030-01-01T12:00:00Z"], exhausted));
    // Of many missed ones, only as many as are left, the oldest first.
    let case = Case {
        runs: (1, Some(3)),
        policy: Policy {
            misfire: Misfire::All,
            catchup_limit: 100_000,
            ..PLAIN
        },
        ..MONTH
    };
    assert_eq!(
        case.decide(),
        fires(&["2030-01-01T12:00:00Z", "2030-01-01T12:01:00Z"], exhausted)
    );
    // Lowered below what has already run: it ends without another.
    let case = Case {
        runs: (3, Some(3)),
        ..NOON
    };
    assert_eq!(case.decide(), fires(&[], exhausted));
}

#[test]
fn an_occurrence_exactly_at_its_end_fires_even_if_seen_late() {
    for misfire in [Misfire::Once, Misfire::All] {
        let case = Case {
            ends_at: Some("2030-01-01T12:00:00Z"),
            policy: Policy { misfire, ..PLAIN },
            now: "2030-01-05T00:00:00Z",
            ..NOON
        };
        assert_eq!(
            case.decide(),
            fires(&["2030-01-01T12:00:00Z"], Then::End(EndReason::Expired))
        );
    }
}

#[test]
fn an_occurrence_after_its_end_does_not_fire() {
    // ends_at was moved to before the next run by an edit that did not recompute it.
    let case = Case {
        ends_at: Some("2030-01-01T11:00:00Z"),
        ..NOON
    };
    assert_eq!(case.decide(), fires(&[], Then::End(EndReason::Expired)));
}

#[test]
fn one_time_is_over_after_it() {
    let case = Case {
        schedule: "at 2030-01-01T12:00:00Z",
        ..NOON
    };
    assert_eq!(
        case.decide(),
        fires(&["2030-01-01T12:00:00Z"], Then::End(EndReason::NoNext))
    );
}

#[test]
fn a_clock_that_was_set_back_fires_nothing_twice() {
    // Noon was dispatched; then the clock says that it is eleven.
    let case = Case {
        next_run_at: "2030-01-02T12:00:00Z",
        now: "2030-01-01T11:00:00Z",
        ..NOON
    };
    assert_eq!(case.decide(), fires(&[], wait("2030-01-02T12:00:00Z")));
}

#[test]
fn a_schedule_edited_while_due_fires_what_was_due_and_goes_on_with_the_new_one() {
    // It was due at noon; the schedule now says ten past every hour.
    let case = Case {
        schedule: "10 * * * *",
        now: "2030-01-01T12:05:00Z",
        ..NOON
    };
    assert_eq!(
        case.decide(),
        fires(&["2030-01-01T12:00:00Z"], wait("2030-01-01T12:10:00Z"))
    );
}

#[test]
fn overlap_decides_beside_unfinished_dispatches() {
    const NONE: Unfinished = NOON.unfinished;
    const PENDING: Unfinished = Unfinished {
        pending: true,
        ..NONE
    };
    const RUNNING: Unfinished = Unfinished {
        running: true,
        ..NONE
    };
    const STALE: Unfinished = Unfinished {
        stale: true,
        ..NONE
    };
    use Overlap::*;
    for (overlap, unfinished, fires, cancels) in [
        (Allow, PENDING, true, false),
        (Allow, RUNNING, true, false),
        (Skip, NONE, true, false),
        (Skip, PENDING, false, false),
        (Skip, RUNNING, false, false),
        (Skip, STALE, true, false),
        (QueueOne, NONE, true, false),
        (QueueOne, RUNNING, true, false),
        (QueueOne, PENDING, false, false),
        (QueueOne, STALE, true, false),
        (CancelPrevious, NONE, true, false),
        (CancelPrevious, PENDING, true, true),
        (CancelPrevious, RUNNING, true, true),
        (CancelPrevious, STALE, true, true),
    ] {
        let case = Case {
            policy: Policy { overlap, ..PLAIN },
            unfinished,
            ..NOON
        };
        let decision = case.decide();
        let what = format!("{overlap:?} beside {unfinished:?}");
        assert_eq!(!decision.fire.is_empty(), fires, "{what}");
        assert_eq!(decision.cancels_previous, cancels, "{what}");
        let noon = "2030-01-01T12:00:00Z";
        let expected = match fires {
            true => Vec::new(),
            false => skipped(SkipReason::Overlap, noon, noon, 1),
        };
        assert_eq!(decision.skipped, expected, "{what}");
        assert_eq!(decision.then, wait("2030-01-02T12:00:00Z"), "{what}");
    }
}

#[test]
fn overlap_also_holds_among_those_of_one_batch() {
    let three = Case {
        schedule: "* * * * *",
        policy: Policy {
            misfire: Misfire::All,
            overlap: Overlap::QueueOne,
            ..PLAIN
        },
        now: "2030-01-01T12:02:00Z",
        ..NOON
    };
    let decision = three.decide();
    assert_eq!(decision.fire, [at("2030-01-01T12:00:00Z")]);
    let expected = ("2030-01-01T12:01:00Z", "2030-01-01T12:02:00Z");
    assert_eq!(
        decision.skipped,
        skipped(SkipReason::Overlap, expected.0, expected.1, 2)
    );
    let latest = Case {
        policy: Policy {
            overlap: Overlap::CancelPrevious,
            ..three.policy
        },
        ..three
    };
    assert_eq!(latest.decide().fire, [at("2030-01-01T12:02:00Z")]);
}

#[test]
fn a_decision_fires_no_more_than_its_share() {
    let policy = Policy {
        misfire: Misfire::All,
        catchup_limit: usize::MAX,
        ..PLAIN
    };
    let fired = |share| {
        let case = Case {
            policy,
            share,
            ..MONTH
        };
        case.decide().fire.len()
    };
    assert_eq!(fired(usize::MAX), 1_000);
    assert_eq!(fired(250), 250);
    assert_eq!(fired(0), 1, "each decision moves on");
}
