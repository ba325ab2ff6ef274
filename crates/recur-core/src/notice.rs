//! Whom to tell of failures, when, and in which words.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use uuid::Uuid;

/// Where an action has no `mute_interval`, its contact is reminded this long after the last message.
pub const REMINDED_AFTER: TimeDelta = TimeDelta::hours(1);
/// An error is quoted up to this number of characters.
const LONGEST_QUOTE: usize = 500;
/// The reason of an attempt whose consumer did not report in time.
pub const LEASE_EXPIRED: &str = "lease expired";

/// Failures in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streak {
    /// How many there are by now.
    pub in_a_row: i32,
    /// How many of them are new.
    pub new: i32,
}

/// When the contact of an action wants to be notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// At this many failures in a row.
    pub threshold: i32,
    /// Never.
    pub is_muted: bool,
    /// Not more often than this.
    pub mute_interval: Option<TimeDelta>,
}

impl Terms {
    /// Is the contact notified of this streak now? Once when it reaches the threshold, and again at a later failure,
    /// when `mute_interval`, or else an hour, has passed since the last message. A `mute_interval` holds for a new
    /// streak as well.
    ///
    /// ```
    /// use chrono::{DateTime, TimeDelta};
    /// use recur_core::notice::{Streak, Terms};
    ///
    /// let terms = Terms { threshold: 3, is_muted: false, mute_interval: None };
    /// let now = DateTime::UNIX_EPOCH;
    /// assert!(!terms.is_notified(Streak { in_a_row: 2, new: 1 }, None, now));
    /// assert!(terms.is_notified(Streak { in_a_row: 3, new: 1 }, None, now));
    /// assert!(!terms.is_notified(Streak { in_a_row: 4, new: 1 }, Some(now), now + TimeDelta::minutes(59)));
    /// assert!(terms.is_notified(Streak { in_a_row: 4, new: 1 }, Some(now), now + TimeDelta::minutes(60)));
    /// ```
    pub fn is_notified(
        &self,
        streak: Streak,
        last_notified: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
    ) -> bool {
        if self.is_muted || streak.in_a_row < self.threshold {
            return false;
        }
        let is_reached_now = streak.in_a_row.saturating_sub(streak.new) < self.threshold;
        let pause = match (self.mute_interval, is_reached_now) {
            (None, true) => return true,
            (None, false) => REMINDED_AFTER,
            (Some(interval), _) => interval,
        };
        last_notified.is_none_or(|notified| now.signed_duration_since(notified) >= pause)
    }
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem<'a> {
    /// Dispatches fail.
    Runs {
        /// How many have failed in a row.
        in_a_row: i32,
        /// Why the last one did.
        error: &'a str,
    },
    /// The action can't be dispatched.
    Dispatching {
        /// Why.
        error: &'a str,
        /// Was the action paused because of it?
        is_paused: bool,
    },
}

/// What a message to a contact is made of.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// The name of the action.
    pub name: &'a str,
    /// Its id.
    pub action: Uuid,
    /// Its provider.
    pub provider: &'a str,
    /// Since when it goes on.
    pub since: Option<DateTime<Utc>>,
    /// A link in which `{id}` stands for the id of the action.
    pub link_template: Option<String>,
}

/// A message to a contact: as one text, and in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What is wrong, in a few words.
    pub problem: String,
    /// The error behind it.
    pub error: Option<String>,
    /// Since when it goes on.
    pub since: Option<DateTime<Utc>>,
    /// What to do about it.
    pub guidance: Option<String>,
    /// Where to look.
    pub link: Option<String>,
    /// All of it.
    pub message: String,
}

impl Report<'_> {
    /// The message that something goes wrong.
    pub fn failing(&self, problem: Problem) -> Notice {
        let (summary, error) = match problem {
            Problem::Runs { in_a_row, error } => {
                let (dispatches, have) = plural(in_a_row);
                (
                    format!("{in_a_row} {dispatches} in a row {have} failed"),
                    error,
                )
            }
            Problem::Dispatching {
                error, is_paused, ..
            } => {
                let paused = if is_paused { " and was paused" } else { "" };
                (format!("the action can not be dispatched{paused}"), error)
            }
        };
        let guidance = self.guidance(problem);
        self.notice(summary, Some(error), Some(guidance))
    }

    /// The message that it is over, after this number of failures.
    pub fn resolved(&self, failures: i32, error: &str) -> Notice {
        let times = if failures == 1 { "time" } else { "times" };
        let summary =
            format!("the action runs again, after it had failed {failures} {times} in a row");
        self.notice(summary, Some(error), None)
    }

    /// The message of an alarm that was raised, or is over.
    pub fn alarm(&self, summary: String, guidance: Option<String>) -> Notice {
        self.notice(summary, None, guidance)
    }

    fn notice(&self, problem: String, error: Option<&str>, guidance: Option<String>) -> Notice {
        let error = error.filter(|error| !error.is_empty()).map(quoted);
        let link = self
            .link_template
            .as_ref()
            .map(|template| template.replace("{id}", &self.action.to_string()));
        let mut message = format!("Action \"{}\" ({}): {problem}", self.name, self.action);
        if let Some(since) = self.since {
            let since = since.to_rfc3339_opts(SecondsFormat::Secs, true);
            message.push_str(&format!(", since {since}"));
        }
        message.push('.');
        if let Some(error) = &error {
            message.push_str(&format!(" The last error: {error}"));
        }
        for more in [&guidance, &link].into_iter().flatten() {
            message.push('\n');
            message.push_str(more);
        }
        Notice {
            problem,
            error,
            since: self.since,
            guidance,
            link,
            message,
        }
    }

    fn guidance(&self, problem: Problem) -> String {
        let (id, provider) = (self.action, self.provider);
        match problem {
            Problem::Runs { error, .. } if error == LEASE_EXPIRED => format!(
                "No consumer reported in time: see whether the consumers of provider \"{provider}\" run, and renew \
                 their leases. recur.retry repeats a dispatch; recur.history('{id}') shows them."
            ),
            Problem::Runs { .. } => format!(
                "recur.history('{id}') shows the dispatches with their errors. recur.retry repeats one, \
                 recur.pause('{id}') stops the action."
            ),
            Problem::Dispatching {
                is_paused: false, ..
            } => format!(
                "recur.update('{id}', …) mends the definition; it is tried again by itself."
            ),
            Problem::Dispatching {
                is_paused: true, ..
            } => format!(
                "recur.update('{id}', …) mends the definition, then recur.resume('{id}') starts the action again."
            ),
        }
    }
}

fn plural(number: i32) -> (&'static str, &'static str) {
    match number {
        1 => ("dispatch", "has"),
        _ => ("dispatches", "have"),
    }
}

fn quoted(error: &str) -> String {
    match error.char_indices().nth(LONGEST_QUOTE) {
        None => error.to_owned(),
        Some((end, _)) => format!("{}…", &error[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

    fn terms(mute_interval: Option<TimeDelta>) -> Terms {
        Terms {
            threshold: 3,
            is_muted: false,
            mute_interval,
        }
    }

    fn streak(in_a_row: i32, new: i32) -> Streak {
        Streak { in_a_row, new }
    }

    #[test]
    fn notified_when_the_threshold_is_reached_also_by_several_at_once() {
        let terms = terms(None);
        for (in_a_row, new, notified) in [
            (1, 1, false),
            (2, 2, false),
            (3, 1, true),
            (9, 9, true),
            (9, 7, true),
            (4, 1, false),
        ] {
            assert_eq!(
                terms.is_notified(streak(in_a_row, new), Some(NOW), NOW),
                notified,
                "{in_a_row} {new}"
            );
        }
    }

    #[test]
    fn reminded_after_the_mute_interval_or_an_hour() {
        let minutes = TimeDelta::minutes;
        for (interval, passed, notified) in [
            (None, 59, false),
            (None, 60, true),
            (Some(minutes(5)), 4, false),
            (Some(minutes(5)), 5, true),
            (Some(minutes(90)), 60, false),
        ] {
            let now = NOW + minutes(passed);
            assert_eq!(
                terms(interval).is_notified(streak(8, 1), Some(NOW), now),
                notified,
                "{interval:?} {passed}"
            );
        }
        // The threshold was lowered meanwhile.
        assert!(terms(None).is_notified(streak(8, 1), None, NOW));
    }

    #[test]
    fn a_mute_interval_holds_for_a_new_streak_as_well() {
        let day = TimeDelta::days(1);
        assert!(!terms(Some(day)).is_notified(streak(3, 1), Some(NOW), NOW + TimeDelta::hours(23)));
        assert!(terms(Some(day)).is_notified(streak(3, 1), Some(NOW), NOW + day));
        assert!(terms(Some(day)).is_notified(streak(3, 1), None, NOW));
    }

    #[test]
    fn muted_is_never_notified() {
        let muted = Terms {
            is_muted: true,
            ..terms(None)
        };
        assert!(!muted.is_notified(streak(3, 1), None, NOW));
    }

    fn report(since: Option<DateTime<Utc>>, link_template: Option<&str>) -> Report<'static> {
        Report {
            name: "nightly",
            action: Uuid::from_u128(7),
            provider: "mailer",
            since,
            link_template: link_template.map(str::to_owned),
        }
    }

    #[test]
    fn the_message_has_all_that_is_needed() {
        let runs = Problem::Runs {
            in_a_row: 3,
            error: "connection refused",
        };
        let notice = report(Some(NOW), Some("https://ops.example/{id}?a={id}")).failing(runs);
        assert_eq!(
            notice.message,
            "Action \"nightly\" (00000000-0000-0000-0000-000000000007): 3 dispatches in a row have failed, since \
             1970-01-01T00:00:00Z. The last error: connection refused\n\
             recur.history('00000000-0000-0000-0000-000000000007') shows the dispatches with their errors. recur.retry \
             repeats one, recur.pause('00000000-0000-0000-0000-000000000007') stops the action.\n\
             https://ops.example/00000000-0000-0000-0000-000000000007?a=00000000-0000-0000-0000-000000000007"
        );
        let one = report(None, None).failing(Problem::Runs {
            in_a_row: 1,
            error: "",
        });
        assert_eq!(one.problem, "1 dispatch in a row has failed");
        assert_eq!((one.error, one.link), (None, None));
        let long = "x".repeat(10_000);
        let long = report(None, None).failing(Problem::Runs {
            in_a_row: 1,
            error: &long,
        });
        assert_eq!(long.error.unwrap().chars().count(), 501);
    }

    #[test]
    fn the_guidance_fits_the_problem() {
        let guidance = |problem| report(None, None).failing(problem).guidance.unwrap();
        assert!(
            guidance(Problem::Runs {
                in_a_row: 3,
                error: LEASE_EXPIRED
            })
            .contains("consumers of provider \"mailer\"")
        );
        let dispatching = |is_paused| Problem::Dispatching {
            error: "e",
            is_paused,
        };
        assert!(guidance(dispatching(false)).contains("by itself"));
        assert!(guidance(dispatching(true)).contains("recur.resume"));
        assert_eq!(
            report(None, None).failing(dispatching(true)).problem,
            "the action can not be dispatched and was paused"
        );
    }

    #[test]
    fn the_end_is_notified_without_guidance() {
        let notice = report(Some(NOW), None).resolved(4, "timeout");
        assert_eq!(
            notice.problem,
            "the action runs again, after it had failed 4 times in a row"
        );
        assert_eq!(notice.guidance, None);
    }
}
