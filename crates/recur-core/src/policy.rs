//! What an action wants done with occurrences that were missed, that overlap, or that lie ahead.

use crate::choice::choice;
use chrono::TimeDelta;

choice! {
    /// What to do with occurrences that were missed while nothing dispatched them.
    ///
    /// ```
    /// use recur_core::policy::Misfire;
    ///
    /// assert_eq!("all".parse(), Ok(Misfire::All));
    /// assert_eq!(Misfire::NAMES, ["once", "skip", "all"]);
    /// let error = "never".parse::<Misfire>().unwrap_err();
    /// assert_eq!(error.to_string(), r#"invalid misfire "never": must be once, skip or all"#);
    /// ```
    pub enum Misfire in "misfire" {
        /// However many were missed, one dispatch, for the latest of them.
        Once = "once",
        /// One dispatch for the latest of them, if it is no older than the grace: [`DEFAULT_GRACE`] unless it is set.
        Skip = "skip",
        /// The newest of them, oldest first, as many as `catchup_limit` says.
        All = "all",
    }
}

choice! {
    /// What to do with an occurrence while an earlier dispatch of the action is unfinished.
    ///
    /// ```
    /// use recur_core::policy::Overlap;
    ///
    /// assert_eq!("queue_one".parse(), Ok(Overlap::QueueOne));
    /// assert_eq!(Overlap::CancelPrevious.as_str(), "cancel_previous");
    /// ```
    pub enum Overlap in "overlap" {
        /// Dispatches may run side by side.
        Allow = "allow",
        /// Nothing fires while an earlier dispatch is unfinished.
        Skip = "skip",
        /// One dispatch may wait behind the one that runs.
        QueueOne = "queue_one",
        /// Earlier dispatches are cancelled.
        CancelPrevious = "cancel_previous",
    }
}

choice! {
    /// What to do with an occurrence while a dispatch with the same key is pending.
    ///
    /// ```
    /// use recur_core::policy::OnDuplicate;
    ///
    /// assert_eq!("skip".parse(), Ok(OnDuplicate::Skip));
    /// ```
    pub enum OnDuplicate in "on_duplicate" {
        /// The pending dispatch gets the payload of the occurrence.
        Merge = "merge",
        /// The pending dispatch stays as it is.
        Skip = "skip",
    }
}

choice! {
    /// Which runs `max_runs` counts.
    ///
    /// ```
    /// use recur_core::policy::CountRuns;
    ///
    /// assert_eq!("completed".parse(), Ok(CountRuns::Completed));
    /// ```
    pub enum CountRuns in "count_runs" {
        /// Each occurrence that was dispatched, whatever becomes of the dispatch.
        Dispatched = "dispatched",
        /// Each dispatch that is completed, and each unfinished one as long as it may be.
        Completed = "completed",
    }
}

/// The grace of [`Misfire::Skip`] where none is set.
pub const DEFAULT_GRACE: TimeDelta = TimeDelta::minutes(1);

/// How far ahead of their time occurrences are dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// Occurrences up to this long after now are dispatched.
    pub reach: TimeDelta,
    /// At most this many dispatches lie ahead.
    pub count: usize,
}

impl Horizon {
    /// The longest reach, ten years, which a horizon has that is only a count.
    pub const LONGEST_REACH: TimeDelta = TimeDelta::days(3_653);

    /// At most this many dispatches of one action lie ahead, whatever its horizon says. An action that runs every
    /// second would otherwise write 31 million rows for a horizon of a year.
    pub const LARGEST_COUNT: usize = 1_000;

    /// The horizon that a span, a count, or both give, within its limits; none without either.
    ///
    /// ```
    /// use chrono::TimeDelta;
    /// use recur_core::policy::Horizon;
    ///
    /// assert_eq!(Horizon::new(None, None), None);
    /// let horizon = Horizon::new(None, Some(3)).unwrap();
    /// assert_eq!(horizon.reach, Horizon::LONGEST_REACH);
    /// let horizon = Horizon::new(Some(TimeDelta::days(7)), None).unwrap();
    /// assert_eq!(horizon.count, Horizon::LARGEST_COUNT);
    /// ```
    pub fn new(reach: Option<TimeDelta>, count: Option<usize>) -> Option<Horizon> {
        if reach.is_none() && count.is_none() {
            return None;
        }
        Some(Horizon {
            reach: reach
                .unwrap_or(Horizon::LONGEST_REACH)
                .min(Horizon::LONGEST_REACH),
            count: count
                .unwrap_or(Horizon::LARGEST_COUNT)
                .min(Horizon::LARGEST_COUNT),
        })
    }

    /// The horizon with at most this count; none where that is nothing.
    pub fn limited(self, count: usize) -> Option<Horizon> {
        (count > 0).then_some(Horizon {
            count: self.count.min(count),
            ..self
        })
    }
}

/// The policies of one action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What to do with missed occurrences.
    pub misfire: Misfire,
    /// An occurrence older than this does not fire.
    pub misfire_grace: Option<TimeDelta>,
    /// With [`Misfire::All`], at most this many occurrences of one outage fire, over as many decisions as it takes.
    pub catchup_limit: usize,
    /// What to do beside unfinished dispatches.
    pub overlap: Overlap,
    /// How far ahead occurrences are dispatched.
    pub horizon: Option<Horizon>,
}

impl Policy {
    /// The horizon, unless the overlap policy needs to know what is unfinished at the occurrence.
    pub(crate) fn usable_horizon(&self) -> Option<Horizon> {
        self.horizon.filter(|_| self.overlap == Overlap::Allow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_its_value() {
        for (value, name) in Misfire::ALL.iter().zip(Misfire::NAMES) {
            assert_eq!((value.as_str(), name.parse()), (*name, Ok(*value)));
        }
        for (value, name) in Overlap::ALL.iter().zip(Overlap::NAMES) {
            assert_eq!((value.as_str(), name.parse()), (*name, Ok(*value)));
        }
        assert_eq!(
            Overlap::NAMES,
            ["allow", "skip", "queue_one", "cancel_previous"]
        );
    }

    #[test]
    fn names_are_taken_literally() {
        for text in ["", "Once", " once", "once "] {
            let expected = format!("invalid misfire \"{text}\": must be once, skip or all");
            assert_eq!(text.parse::<Misfire>().unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_horizon_is_a_span_a_count_or_both() {
        let hour = TimeDelta::hours(1);
        let both = |reach, count| Some(Horizon { reach, count });
        assert_eq!(Horizon::new(Some(hour), None), both(hour, 1_000));
        assert_eq!(Horizon::new(Some(hour), Some(2)), both(hour, 2));
        let longest = Horizon::LONGEST_REACH;
        assert_eq!(Horizon::new(None, Some(2)), both(longest, 2));
    }

    #[test]
    fn a_horizon_has_limits_of_its_own() {
        let century = Some(TimeDelta::days(36_525));
        let horizon = Horizon::new(century, Some(usize::MAX)).unwrap();
        assert_eq!(horizon.reach, Horizon::LONGEST_REACH);
        assert_eq!(horizon.count, 1_000);
        assert_eq!(horizon.limited(3).unwrap().count, 3);
        assert_eq!(horizon.limited(5_000), Some(horizon));
        assert_eq!(horizon.limited(0), None);
    }
}
