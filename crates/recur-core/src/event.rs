//! The kinds of events, and which of them are recorded.

use crate::choice::choice;
use crate::invalid::InvalidValue;
use std::fmt;
use std::str::FromStr;

choice! {
    /// What happened, as stored in `recur.events.kind`.
    ///
    /// ```
    /// use recur_core::event::EventKind;
    ///
    /// assert_eq!(EventKind::Created.as_str(), "action.created");
    /// assert_eq!("owner.notified".parse(), Ok(EventKind::Notified));
    /// ```
    pub enum EventKind in "kind" {
        /// An action was created.
        Created = "action.created",
        /// An action was changed.
        Updated = "action.updated",
        /// An action was paused.
        Paused = "action.paused",
        /// An action was resumed.
        Resumed = "action.resumed",
        /// An action was deleted.
        Deleted = "action.deleted",
        /// An action has ended: nothing more occurs up to `ends_at`.
        Expired = "action.expired",
        /// An action has ended: `max_runs` is reached.
        Exhausted = "action.exhausted",
        /// An action has ended: the schedule has no more occurrences.
        NoNext = "action.no_next",
        /// An action could not be dispatched.
        Failed = "action.error",
        /// An occurrence was dispatched.
        Dispatched = "occurrence.dispatched",
        /// Occurrences did not fire.
        Skipped = "occurrence.skipped",
        /// A dispatch was taken from a consumer that did not report.
        Recovered = "dispatch.recovered",
        /// Everything that was stored of a subject was removed.
        Forgotten = "subject.forgotten",
        /// A dispatch was completed.
        Completed = "dispatch.completed",
        /// A dispatch has failed for good.
        RunFailed = "dispatch.failed",
        /// A dispatch was cancelled.
        Cancelled = "dispatch.cancelled",
        /// An attempt of a dispatch has failed, and another one follows.
        Retrying = "dispatch.retrying",
        /// A dispatch was triggered by hand.
        Triggered = "dispatch.triggered",
        /// The contact of an action, or else its owner, was notified of a problem.
        Notified = "owner.notified",
        /// A problem that the contact was notified of is over.
        Resolved = "action.resolved",
        /// An alarm of an action was raised.
        AlarmRaised = "alarm.raised",
        /// The cause of an alarm is gone.
        AlarmOver = "alarm.over",
        /// A journey was stored.
        JourneyStored = "journey.stored",
        /// The states of a journey were changed.
        JourneyChanged = "journey.changed",
        /// A journey was deleted.
        JourneyDropped = "journey.dropped",
        /// An endpoint was created.
        EndpointCreated = "endpoint.created",
        /// An endpoint was changed, or its signing secret was.
        EndpointChanged = "endpoint.changed",
        /// An endpoint was deleted.
        EndpointDropped = "endpoint.dropped",
        /// An endpoint is left alone for a while because deliveries failed.
        EndpointPaused = "endpoint.paused",
        /// Deliveries to an endpoint go on.
        EndpointResumed = "endpoint.resumed",
        /// Nothing is delivered to an endpoint any more.
        EndpointDisabled = "endpoint.disabled",
    }
}

impl EventKind {
    /// What the server's log calls it, behind `recurring.`; None for what is not logged.
    ///
    /// ```
    /// use recur_core::event::EventKind;
    ///
    /// assert_eq!(EventKind::Created.log_verb(), Some("create"));
    /// assert_eq!(EventKind::RunFailed.log_verb(), EventKind::Failed.log_verb());
    /// ```
    pub const fn log_verb(self) -> Option<&'static str> {
        Some(match self {
            EventKind::Created => "create",
            EventKind::Updated => "update",
            EventKind::Paused => "pause",
            EventKind::Resumed => "resume",
            EventKind::Deleted => "delete",
            EventKind::Expired => "expired",
            EventKind::Exhausted => "exhausted",
            EventKind::NoNext => "no_next",
            EventKind::Dispatched | EventKind::Triggered => "dispatch",
            EventKind::Failed | EventKind::RunFailed => "dispatch_error",
            _ => return None,
        })
    }
}

/// Which events of dispatches are recorded: the setting `recur.record_events`, and the column of an action.
///
/// ```
/// use recur_core::event::{EventKind, RecordedEvents};
///
/// let recorded: RecordedEvents = "triggered,failed".parse().unwrap();
/// assert_eq!(recorded.to_string(), "failed, triggered");
/// assert!(recorded.contains(EventKind::RunFailed));
/// assert!(!recorded.contains(EventKind::Completed));
/// assert_eq!("all".parse::<RecordedEvents>().unwrap().to_string(), "all");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedEvents(u8);

impl RecordedEvents {
    /// What can be recorded, and how it is called.
    const KINDS: [(&'static str, EventKind); 5] = [
        ("completed", EventKind::Completed),
        ("failed", EventKind::RunFailed),
        ("cancelled", EventKind::Cancelled),
        ("retrying", EventKind::Retrying),
        ("triggered", EventKind::Triggered),
    ];
    const NONE: RecordedEvents = RecordedEvents(0);
    const ALL: RecordedEvents = RecordedEvents(0b1_1111);

    /// The names that a list may have, besides `all` and `none`.
    pub const NAMES: &'static str = "completed, failed, cancelled, retrying, triggered";

    /// Are events of this kind recorded? Kinds that are no matter of choice are.
    pub fn contains(self, kind: EventKind) -> bool {
        let place = Self::KINDS.iter().position(|(_, known)| *known == kind);
        place.is_none_or(|place| self.0 & (1 << place) != 0)
    }
}

/// What is recorded by default: what somebody has to look into, and what somebody did.
impl Default for RecordedEvents {
    fn default() -> RecordedEvents {
        RecordedEvents(0b1_0010)
    }
}

impl FromStr for RecordedEvents {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<RecordedEvents, InvalidValue> {
        let refused = || {
            let names = Self::NAMES;
            let problem = format!("must be all, none, or some of {names}, separated by commas");
            InvalidValue::new("record_events", text, problem)
        };
        match text.trim() {
            "all" => return Ok(RecordedEvents::ALL),
            "none" => return Ok(RecordedEvents::NONE),
            _ => {}
        }
        let mut recorded = RecordedEvents::NONE;
        for name in text.split(',').map(str::trim) {
            let place = Self::KINDS.iter().position(|(known, _)| *known == name);
            recorded.0 |= 1 << place.ok_or_else(refused)?;
        }
        Ok(recorded)
    }
}

impl fmt::Display for RecordedEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            RecordedEvents::ALL => return f.write_str("all"),
            RecordedEvents::NONE => return f.write_str("none"),
            _ => {}
        }
        let names = Self::KINDS.iter();
        let names = names.filter(|(_, kind)| self.contains(*kind));
        let names: Vec<&str> = names.map(|(name, _)| *name).collect();
        f.write_str(&names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_in_any_order_and_printed_in_one() {
        for (text, canonical) in [
            ("failed", "failed"),
            (" triggered , failed,failed", "failed, triggered"),
            (RecordedEvents::NAMES, "all"),
            (" none ", "none"),
            ("all", "all"),
        ] {
            let read: RecordedEvents = text.parse().unwrap();
            assert_eq!(read.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(read));
        }
        assert_eq!(RecordedEvents::default().to_string(), "failed, triggered");
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for bad in [
            "",
            ",",
            "failed,",
            "Failed",
            "failed;triggered",
            "all, failed",
            "dispatch.failed",
        ] {
            let error = bad.parse::<RecordedEvents>().unwrap_err().to_string();
            assert_eq!(
                error,
                format!(
                    "invalid record_events \"{bad}\": must be all, none, or some of completed, failed, cancelled, \
                     retrying, triggered, separated by commas"
                )
            );
        }
    }

    #[test]
    fn other_kinds_are_no_matter_of_choice() {
        let none: RecordedEvents = "none".parse().unwrap();
        assert!(none.contains(EventKind::Created) && none.contains(EventKind::Recovered));
        assert!(
            EventKind::ALL
                .iter()
                .all(|kind| RecordedEvents::ALL.contains(*kind))
        );
    }
}
