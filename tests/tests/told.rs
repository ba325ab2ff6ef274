//! How many of a herd are left to be told, without a server: the very source file, compiled into this test.

#[path = "../../src/dispatch/told.rs"]
mod told;

use told::{AnnouncedGroup, untold};

/// So many of a provider, so many of which are first attempts.
fn group(provider: &str, dispatches: i64, scheduled: i64) -> AnnouncedGroup {
    AnnouncedGroup {
        channel: None,
        provider: provider.to_owned(),
        dispatches,
        scheduled,
        since: None,
    }
}

#[test]
fn the_rest_is_told_and_what_the_first_count_did_not_reach() {
    let all = vec![group("p", 3_000, 2_500), group("q", 10, 10)];
    let told = [group("p", 2_000, 2_000)];
    assert_eq!(
        untold(all, &told),
        [group("p", 1_000, 500), group("q", 10, 10)]
    );
}

#[test]
fn a_group_of_which_some_are_left_is_told_whatever_was_claimed_meanwhile() {
    // Of 3,000 the first 2,000 were told, and 1,500 of those have been claimed: 1,000 nobody has heard of.
    let told = [group("p", 2_000, 2_000)];
    assert_eq!(
        untold(vec![group("p", 1_500, 1_500)], &told),
        [group("p", 1, 0)]
    );
    // As many were claimed as are left.
    assert_eq!(
        untold(vec![group("p", 2_000, 0)], &told),
        [group("p", 1, 0)]
    );
    // All of them.
    assert_eq!(untold(Vec::new(), &told), []);
}

#[test]
fn channels_are_told_apart() {
    let elsewhere = AnnouncedGroup {
        channel: Some("elsewhere".to_owned()),
        ..group("p", 5, 5)
    };
    assert_eq!(
        untold(vec![elsewhere.clone()], &[group("p", 2_000, 0)]),
        [elsewhere]
    );
}
