//! The one case in which an occurrence could be dispatched a second time, and how it is not.

use super::store::{self, LockedTimer, NewDispatch, StoredDefinition};
use chrono::{DateTime, Utc};
use pgrx::spi::SpiResult;
use std::collections::HashMap;
use uuid::Uuid;

type Instant = DateTime<Utc>;

/// Occurrences that are not later than the last one may have been dispatched, and be over, already: after a clock was set
/// back, or a timer by hand. (One whose dispatch is not over yet is refused by the primary key.)
pub struct Repeated(HashMap<Uuid, Instant>);

impl Repeated {
    pub fn of(locked: &[LockedTimer]) -> Repeated {
        let last = locked
            .iter()
            .filter_map(|timer| Some((timer.action, timer.last_run_at?, timer.next_run_at)))
            .filter(|(_, last, next)| last >= next)
            .map(|(action, last, _)| (action, last));
        Repeated(last.collect())
    }

    pub fn is_possible(&self) -> bool {
        !self.0.is_empty()
    }

    fn is_suspect(&self, one: &NewDispatch) -> bool {
        let last = self.0.get(&one.action);
        last.is_some_and(|last| *last >= one.occurrence)
    }

    /// Where history is not kept, a suspect must have been dispatched.
    pub fn drop_unrecorded(
        &self,
        new: &mut Vec<NewDispatch>,
        of: &HashMap<Uuid, StoredDefinition>,
    ) {
        new.retain(|one| {
            !self.is_suspect(one) || of.get(&one.action).is_none_or(|d| d.keeps_history)
        });
    }

    /// Where it is kept, history tells.
    pub fn take_back_finished(&self, inserted: &mut Vec<NewDispatch>) -> SpiResult<()> {
        let suspects = inserted.iter().filter(|one| self.is_suspect(one));
        let over = store::take_back_finished(suspects.map(|one| one.id).collect())?;
        inserted.retain(|one| !over.contains(&one.id));
        Ok(())
    }
}
