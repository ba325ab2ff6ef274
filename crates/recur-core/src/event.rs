//! The kinds of events.

use crate::choice::choice;

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
        /// The contact of an action, or else its owner, was notified of a problem.
        Notified = "owner.notified",
    }
}
