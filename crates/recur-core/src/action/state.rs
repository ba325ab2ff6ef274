//! An action as it is stored: what people wrote, and what its runs have made of it.

use chrono::{DateTime, Utc};

use super::change::Withdrawn;
use super::columns::Column;
use super::definition::Definition;
use super::journey::Journey;
use super::value::{Json, Value};
use crate::policy::CountRuns;

/// What every run changes of an action.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timer {
    /// Does the action fire? Not while paused, nor after its end.
    pub enabled: bool,
    /// The earliest occurrence that has not been dispatched; None while not enabled.
    pub next_run_at: Option<DateTime<Utc>>,
    /// When the dispatcher looks at the action; None while not enabled.
    pub due_at: Option<DateTime<Utc>>,
    /// The latest occurrence that was dispatched, also ahead of its time.
    pub last_run_at: Option<DateTime<Utc>>,
    /// The first dispatch that is ahead of its time.
    pub next_ahead: Option<DateTime<Utc>>,
    /// While dispatches are ahead of their time, or the last of them unfinished: the latest occurrence that has come
    /// due.
    pub ran_at: Option<DateTime<Utc>>,
    /// How many occurrences have been dispatched.
    pub run_count: i64,
    /// How often in a row the action could not be evaluated.
    pub error_count: i64,
    /// Why the action is paused.
    pub paused_reason: Option<String>,
    /// Was it paused together with others, by `pause_all`? Edits leave that as it is.
    pub paused_in_bulk: bool,
    /// Why the action ended.
    pub ended_reason: Option<String>,
    /// While paused: the first occurrence that is missed.
    pub missed_from: Option<DateTime<Utc>>,
}

impl Timer {
    /// When the action runs next, dispatched already or not.
    pub fn next_due(&self) -> Option<DateTime<Utc>> {
        let runs = [self.next_ahead, self.next_run_at].into_iter().flatten();
        runs.min().filter(|_| self.enabled)
    }

    /// When the action ran last: the latest occurrence that has come due.
    pub fn last_due(&self) -> Option<DateTime<Utc>> {
        match self.next_ahead {
            Some(_) => self.ran_at,
            None => self.last_run_at,
        }
    }

    /// Dispatches that were ahead of their time are withdrawn, and are no longer among the runs.
    pub(super) fn withdraw(&mut self, withdrawn: Withdrawn, now: DateTime<Utc>) {
        if withdrawn.count == 0 {
            return;
        }
        self.run_count -= withdrawn.count;
        let ran_at = self.ran_at.filter(|_| self.next_ahead.is_some());
        self.last_run_at = withdrawn.last_run_at.max(ran_at);
        // A dispatch that was cancelled ahead of its time stays, so that its occurrence is not dispatched again.
        self.next_ahead = self.last_run_at.filter(|last| *last > now);
        self.ran_at = ran_at.filter(|_| self.next_ahead.is_some());
    }
}

/// An action: its definition and its state.
#[derive(Clone, Debug, PartialEq)]
pub struct Action<J> {
    /// What people wrote.
    pub definition: Definition<J>,
    /// What every run changes.
    pub timer: Timer,
    /// How many of its dispatches have been completed.
    pub completed_count: i64,
    /// What is carried from one run to the next.
    pub context: Option<J>,
    /// Counts the changes of the context.
    pub context_version: i64,
    /// Was the action added beside another one of the same identity?
    pub duplicate: bool,
    /// Which journey the action schedules, if it does.
    pub journey: Option<Journey>,
}

impl<J: Json> Action<J> {
    /// How many runs it has had, as `count_runs` counts them.
    pub fn runs(&self) -> i64 {
        match self.definition.count_runs() {
            CountRuns::Dispatched => self.timer.run_count,
            CountRuns::Completed => self.completed_count,
        }
    }

    /// Has it had all of its runs?
    pub fn is_exhausted(&self) -> bool {
        let max_runs = self.definition.max_runs();
        max_runs.is_some_and(|max_runs| self.runs() >= max_runs)
    }

    /// The value of any column that can be set.
    pub fn get(&self, column: Column) -> Value<J> {
        match column {
            Column::Context => self.context.clone().map_or(Value::Null, Value::Json),
            Column::Enabled => Value::Bool(self.timer.enabled),
            Column::PausedReason => self.timer.paused_reason.clone().into(),
            column => self.definition.get(column).clone(),
        }
    }
}
