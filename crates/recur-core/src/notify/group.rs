//! Announcing very many dispatches in two parts: the first ones at once, the rest when all are counted.

use chrono::{DateTime, Utc};

/// Dispatches that share a channel and a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The channel; none for the default channel.
    pub channel: Option<String>,
    /// The provider.
    pub provider: String,
    /// How many dispatches there are.
    pub dispatches: i64,
    /// How many of them are first attempts at an occurrence.
    pub scheduled: i64,
    /// Since when the first of those is available.
    pub since: Option<DateTime<Utc>>,
}

/// What is left to announce of all available dispatches when a part was announced before.
///
/// Consumers claim between the two counts, and which of the dispatches they took is unknown: the ones that are left
/// may be fewer than those announced, and still include some that were not. So at least one of each group is
/// announced. A count is a hint, but a group that is not announced at all waits until a consumer happens to ask.
///
/// ```
/// use recur_core::notify::{Group, unannounced};
///
/// let mail = |dispatches| Group {
///     channel: None,
///     provider: "mail".to_owned(),
///     dispatches,
///     scheduled: 0,
///     since: None,
/// };
/// assert_eq!(unannounced(vec![mail(3_000)], &[mail(2_000)]), [mail(1_000)]);
/// assert_eq!(unannounced(vec![mail(1_500)], &[mail(2_000)]), [mail(1)]);
/// ```
pub fn unannounced(mut all: Vec<Group>, announced: &[Group]) -> Vec<Group> {
    for group in &mut all {
        let is_same =
            |other: &&Group| other.channel == group.channel && other.provider == group.provider;
        if let Some(announced) = announced.iter().find(is_same) {
            group.dispatches = (group.dispatches - announced.dispatches).max(1);
            group.scheduled = (group.scheduled - announced.scheduled).max(0);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dispatches of a provider, of which some are first attempts.
    fn group(provider: &str, dispatches: i64, scheduled: i64) -> Group {
        Group {
            channel: None,
            provider: provider.to_owned(),
            dispatches,
            scheduled,
            since: None,
        }
    }

    #[test]
    fn the_rest_and_groups_that_the_first_count_did_not_reach_are_left() {
        let all = vec![group("p", 3_000, 2_500), group("q", 10, 10)];
        let announced = [group("p", 2_000, 2_000)];
        assert_eq!(
            unannounced(all, &announced),
            [group("p", 1_000, 500), group("q", 10, 10)]
        );
    }

    #[test]
    fn a_group_with_any_left_is_announced_whatever_was_claimed_meanwhile() {
        // Of 3,000 the first 2,000 were announced, and 1,500 of those are claimed: 1,000 are unannounced.
        let announced = [group("p", 2_000, 2_000)];
        assert_eq!(
            unannounced(vec![group("p", 1_500, 1_500)], &announced),
            [group("p", 1, 0)]
        );
        // As many were claimed as are left.
        assert_eq!(
            unannounced(vec![group("p", 2_000, 0)], &announced),
            [group("p", 1, 0)]
        );
        // All of them.
        assert_eq!(unannounced(Vec::new(), &announced), []);
    }

    #[test]
    fn groups_of_different_channels_are_different_groups() {
        let elsewhere = Group {
            channel: Some("elsewhere".to_owned()),
            ..group("p", 5, 5)
        };
        assert_eq!(
            unannounced(vec![elsewhere.clone()], &[group("p", 2_000, 0)]),
            [elsewhere]
        );
    }
}
