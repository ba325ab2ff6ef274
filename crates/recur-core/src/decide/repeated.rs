//! The one case in which an occurrence could be dispatched a second time.

use chrono::{DateTime, Utc};
use std::collections::HashMap;
use uuid::Uuid;

/// The actions of a batch whose occurrences may have been dispatched, and have finished, before.
///
/// That happens after a clock was set back, or a timer by hand: then `next_run_at` is not later than the last run.
/// An earlier dispatch that is still unfinished needs no such care, because the primary key refuses a second one.
/// One that has finished is in the history, if its action keeps any.
///
/// ```
/// use chrono::{TimeDelta, Utc};
/// use recur_core::decide::Repeated;
/// use uuid::Uuid;
///
/// let (action, noon) = (Uuid::from_u128(1), "2030-01-01T12:00:00Z".parse().unwrap());
/// // The clock was set back by an hour after noon was dispatched.
/// let repeated = Repeated::new([(action, Some(noon), noon - TimeDelta::hours(1))]);
/// assert!(repeated.is_suspect(action, noon));
/// assert!(!repeated.is_suspect(action, noon + TimeDelta::hours(1)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Repeated(HashMap<Uuid, DateTime<Utc>>);

impl Repeated {
    /// Takes the id, `last_run_at` and `next_run_at` of every action in the batch.
    pub fn new(
        timers: impl IntoIterator<Item = (Uuid, Option<DateTime<Utc>>, DateTime<Utc>)>,
    ) -> Repeated {
        let suspects = timers.into_iter().filter_map(|(action, last, next)| {
            let last = last.filter(|last| *last >= next)?;
            Some((action, last))
        });
        Repeated(suspects.collect())
    }

    /// Can any occurrence of the batch have been dispatched before?
    pub fn is_possible(&self) -> bool {
        !self.0.is_empty()
    }

    /// Can this occurrence have been dispatched, and have finished, before?
    ///
    /// The history tells; see [`must_be_dropped`](Self::must_be_dropped) where there is none.
    pub fn is_suspect(&self, action: Uuid, occurrence: DateTime<Utc>) -> bool {
        let last = self.0.get(&action);
        last.is_some_and(|last| *last >= occurrence)
    }

    /// Is this occurrence not to be dispatched, because no history could tell that it was?
    pub fn must_be_dropped(
        &self,
        action: Uuid,
        occurrence: DateTime<Utc>,
        keeps_history: bool,
    ) -> bool {
        !keeps_history && self.is_suspect(action, occurrence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[test]
    fn only_occurrences_up_to_the_last_run_are_suspect() {
        let noon: DateTime<Utc> = "2030-01-01T12:00:00Z".parse().unwrap();
        let hour = TimeDelta::hours(1);
        let [back, ahead, new] = [1, 2, 3].map(Uuid::from_u128);
        let repeated = Repeated::new([
            (back, Some(noon), noon - hour),
            (ahead, Some(noon), noon + hour),
            (new, None, noon),
        ]);
        assert!(repeated.is_possible());
        assert!(repeated.is_suspect(back, noon - hour));
        assert!(repeated.is_suspect(back, noon));
        assert!(!repeated.is_suspect(back, noon + hour));
        for action in [ahead, new] {
            assert!(!repeated.is_suspect(action, noon));
        }
        assert!(repeated.must_be_dropped(back, noon, false));
        assert!(!repeated.must_be_dropped(back, noon, true));
        assert!(!repeated.must_be_dropped(back, noon + hour, false));
        // A timer set to the very occurrence that has run.
        assert!(Repeated::new([(back, Some(noon), noon)]).is_suspect(back, noon));
        assert!(!Repeated::new([(ahead, Some(noon), noon + hour)]).is_possible());
    }
}
