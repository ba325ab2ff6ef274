//! What to do with an action that is due: a pure function of the action and `now`.

use chrono::{DateTime, Utc};
use recurrence::Recurrence;

/// A due action, as far as the decision depends on it.
pub struct Due<'a> {
    pub recurrence: &'a Recurrence,
    /// The earliest occurrence that has not been dispatched.
    pub next_run_at: DateTime<Utc>,
    pub run_count: i64,
    pub max_runs: Option<i64>,
    pub ends_at: Option<DateTime<Utc>>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Decision {
    /// The occurrence to dispatch.
    pub fire: Option<DateTime<Utc>>,
    pub then: Then,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Then {
    WaitUntil(DateTime<Utc>),
    End(EndReason),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// `max_runs` reached.
    Exhausted,
    /// Nothing more up to `ends_at`.
    Expired,
    /// The schedule itself has come to its end.
    NoNext,
}

impl EndReason {
    /// As stored in `ended_reason`.
    pub fn name(self) -> &'static str {
        match self {
            EndReason::Exhausted => "exhausted",
            EndReason::Expired => "expired",
            EndReason::NoNext => "no_next",
        }
    }

    /// The event that tells of it.
    pub fn event_kind(self) -> &'static str {
        match self {
            EndReason::Exhausted => "action.exhausted",
            EndReason::Expired => "action.expired",
            EndReason::NoNext => "action.no_next",
        }
    }
}

/// However many occurrences were missed, one dispatch, for the latest of them.
pub fn decide(due: &Due, now: DateTime<Utc>) -> Decision {
    if due.max_runs.is_some_and(|limit| due.run_count >= limit) {
        return Decision {
            fire: None,
            then: Then::End(EndReason::Exhausted),
        };
    }
    // An occurrence at or before ends_at fires even if it is seen late.
    let in_bounds = due.ends_at.is_none_or(|end| due.next_run_at <= end);
    let fire = in_bounds.then(|| match due.recurrence.previous_or_at(now) {
        Some(latest) => latest.at.max(due.next_run_at),
        None => due.next_run_at,
    });
    let run_count = due.run_count + i64::from(fire.is_some());
    let then = if due.max_runs.is_some_and(|limit| run_count >= limit) {
        Then::End(EndReason::Exhausted)
    } else {
        match due.recurrence.next_after(now) {
            Some(next) => Then::WaitUntil(next.at),
            None if due.ends_at.is_some() => Then::End(EndReason::Expired),
            None => Then::End(EndReason::NoNext),
        }
    };
    Decision { fire, then }
}
