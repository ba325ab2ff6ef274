//! When the launcher says that the server lacks background workers.

use chrono::{DateTime, TimeDelta, Utc};

/// It is said at most once in this time.
const APART: TimeDelta = TimeDelta::minutes(1);

/// What the launcher has said of the slots for background workers that the server lacks.
#[derive(Debug, Default)]
pub struct Shortage {
    /// The number of slots that would be enough, as said last; 0 if nothing was lacking since.
    said: i32,
    said_at: Option<DateTime<Utc>>,
}

/// What to say now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Say {
    /// Nothing new.
    Nothing,
    /// More is lacking than was said. It is said at this instant, if it is so then.
    Later(DateTime<Utc>),
    /// Slots are lacking, more than was said.
    Lacking,
    /// Nothing is lacking any more.
    Enough,
}

impl Shortage {
    /// Notes how many slots the server would need, 0 where it has enough.
    ///
    /// ```
    /// use recur_core::service::{Say, Shortage};
    ///
    /// let mut shortage = Shortage::default();
    /// let now = chrono::DateTime::UNIX_EPOCH;
    /// assert_eq!(shortage.note(10, now), Say::Lacking);
    /// assert_eq!(shortage.note(10, now), Say::Nothing);
    /// assert_eq!(shortage.note(0, now), Say::Enough);
    /// ```
    pub fn note(&mut self, needed: i32, now: DateTime<Utc>) -> Say {
        if needed == 0 {
            let was_lacking = std::mem::take(&mut self.said) > 0;
            return if was_lacking {
                Say::Enough
            } else {
                Say::Nothing
            };
        }
        if needed <= self.said {
            return Say::Nothing;
        }
        // A clock that was set back does not delay it for longer.
        self.said_at = self.said_at.map(|at| at.min(now));
        let again = self.said_at.map(|at| at + APART);
        if let Some(again) = again.filter(|again| now < *again) {
            return Say::Later(again);
        }
        (self.said, self.said_at) = (needed, Some(now));
        Say::Lacking
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(second)
    }

    #[test]
    fn it_is_said_again_when_more_is_lacking_and_at_most_once_a_minute() {
        let mut shortage = Shortage::default();
        for (second, needed, said) in [
            (0, 0, Say::Nothing),
            (1, 10, Say::Lacking),
            (2, 10, Say::Nothing),
            (3, 12, Say::Later(at(61))),
            (4, 10, Say::Nothing),
            (60, 13, Say::Later(at(61))),
            (61, 13, Say::Lacking),
            (500, 12, Say::Nothing),
            (501, 14, Say::Lacking),
            (502, 0, Say::Enough),
            (503, 0, Say::Nothing),
            (504, 9, Say::Later(at(561))),
            (505, 0, Say::Nothing),
            (561, 9, Say::Lacking),
        ] {
            assert_eq!(shortage.note(needed, at(second)), said, "at {second}");
        }
    }

    #[test]
    fn a_clock_that_is_set_back_delays_it_by_a_minute_at_most() {
        let mut shortage = Shortage::default();
        assert_eq!(shortage.note(10, at(10_000)), Say::Lacking);
        assert_eq!(shortage.note(11, at(0)), Say::Later(at(60)));
        assert_eq!(shortage.note(11, at(30)), Say::Later(at(60)));
        assert_eq!(shortage.note(11, at(60)), Say::Lacking);
    }
}
