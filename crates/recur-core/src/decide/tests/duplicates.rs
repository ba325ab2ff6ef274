//! Decisions about occurrences whose key is that of a pending dispatch.

use super::*;

/// Deduplicated, and nothing is a duplicate.
const KEYED: Case = Case {
    duplicates: Some(Duplicates {
        skipped: &[],
        merged: &[],
    }),
    ..NOON
};

/// Six occurrences are due: at 12:00, 12:01, … 12:05.
const SIX: Case = Case {
    schedule: "* * * * *",
    policy: Policy {
        misfire: Misfire::All,
        ..PLAIN
    },
    now: "2030-01-01T12:05:00Z",
    ..KEYED
};

fn with(case: Case, skipped: &[&str], merged: &[&str]) -> Decision {
    let leaked = |texts: &[&str]| -> &'static [DateTime<Utc>] {
        Vec::leak(texts.iter().map(|text| at(text)).collect())
    };
    let duplicates = Some(Duplicates {
        skipped: leaked(skipped),
        merged: leaked(merged),
    });
    Case { duplicates, ..case }.decide()
}

fn skips(decision: &Decision) -> Vec<(SkipReason, u64)> {
    let skipped = decision.skipped.iter();
    skipped.map(|one| (one.reason, one.count)).collect()
}

#[test]
fn a_duplicate_does_not_fire_and_is_named() {
    let noon = "2030-01-01T12:00:00Z";
    let next = wait("2030-01-02T12:00:00Z");
    assert_eq!(KEYED.decide(), fires(&[noon], next));
    for (decision, reason) in [
        (with(KEYED, &[noon], &[]), SkipReason::Duplicate),
        (with(KEYED, &[], &[noon]), SkipReason::Merged),
    ] {
        assert_eq!((&decision.fire, decision.then), (&Vec::new(), next));
        let named = Skipped {
            reason,
            from: at(noon),
            until: at(noon),
            count: 1,
        };
        assert_eq!(decision.skipped, [named]);
    }
}

#[test]
fn of_several_only_the_duplicates_are_dropped() {
    let decision = with(
        SIX,
        &["2030-01-01T12:01:00Z", "2030-01-01T12:03:00Z"],
        &["2030-01-01T12:05:00Z"],
    );
    assert_eq!(decision.fire.len(), 3);
    assert_eq!(
        skips(&decision),
        [(SkipReason::Duplicate, 2), (SkipReason::Merged, 1)]
    );
}

#[test]
fn a_duplicate_is_no_run() {
    let noon = "2030-01-01T12:00:00Z";
    let last = Case {
        runs: (4, Some(5)),
        ..KEYED
    };
    assert_eq!(last.decide().then, Then::End(EndReason::Exhausted));
    assert_eq!(
        with(last, &[noon], &[]).then,
        wait("2030-01-02T12:00:00Z"),
        "the run is still to come"
    );
}

#[test]
fn a_duplicate_cancels_nothing() {
    let noon = "2030-01-01T12:00:00Z";
    let cancelling = Case {
        policy: Policy {
            overlap: Overlap::CancelPrevious,
            ..PLAIN
        },
        unfinished: Unfinished {
            running: true,
            ..Unfinished::default()
        },
        ..KEYED
    };
    assert!(cancelling.decide().cancels_previous);
    assert!(!with(cancelling, &[noon], &[]).cancels_previous);
}

/// What is pending at an occurrence is not known before it.
#[test]
fn it_is_decided_at_its_instant() {
    let before = Case {
        now: "2030-01-01T11:59:58Z",
        ..NOON
    };
    let until = "2030-01-01T12:00:00Z";
    assert!(before.stage(until).is_some());
    let keyed = Case {
        duplicates: KEYED.duplicates,
        ..before
    };
    assert_eq!(keyed.stage(until), None);
    let horizon = Horizon::new(None, Some(3));
    let policy = Policy { horizon, ..PLAIN };
    assert_eq!(Case { policy, ..NOON }.decide().fire.len(), 4);
    assert_eq!(Case { policy, ..KEYED }.decide().fire.len(), 1);
}
