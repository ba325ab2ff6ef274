//! What the first dispatcher of a database does between two instants, besides dispatching: short tasks that come due
//! now and then, such as the expiry of leases.
//!
//! A task is one transaction that waits at most 50 ms for a lock, and returns when to look again. It begins only if no
//! timer is due within the next moments. Where there is always one, it has its turn all the same, but a small one.

use super::context::{Interruption, WorkerContext};
use super::lease_expiry::{self, LeaseExpiry};
use super::maintenance;
use super::staffing::Staffing;
use super::task::Task;
use crate::alerts::alarms;
use crate::pg::time::{self, after};
use crate::runtime::settings;
use crate::runtime::shared::{self, Exit};
use chrono::{DateTime, Utc};
use std::time::Duration;

/// When to look again at alarms whose rows are locked.
const ALARMS_LOCKED_ELSEWHERE: Duration = Duration::from_millis(100);
/// How often to see whether the database needs a maintenance process.
const CHECK_EVERY: Duration = Duration::from_secs(60);

/// The tasks of a first dispatcher.
pub struct Upkeep {
    leases: Task,
    lease_expiry: LeaseExpiry,
    /// What `recur.recover_after` asks for: once, unless an earlier dispatcher has handed the database over.
    recovery: Option<Task>,
    alarms: Task,
    /// When an alarm could be raised or be over, as known since the last look.
    next_alarm: DateTime<Utc>,
    staffing: Task,
    executors: Staffing,
    maintenance: Task,
    /// When it was last seen whether the database needs maintenance.
    checked_at: DateTime<Utc>,
}

impl Upkeep {
    /// `checked_at` is when an earlier dispatcher has last looked whether the database needs maintenance.
    pub fn new(checked_at: DateTime<Utc>) -> Upkeep {
        let mut maintenance = Task::new("look for maintenance");
        maintenance.look_at = after(checked_at, CHECK_EVERY);
        Upkeep {
            leases: Task::new("lease expiry"),
            lease_expiry: LeaseExpiry::new(),
            recovery: (checked_at == DateTime::UNIX_EPOCH).then(|| Task::new("recovery")),
            alarms: Task::new("look at alarms"),
            next_alarm: DateTime::<Utc>::MAX_UTC,
            staffing: Task::new("look after executors"),
            executors: Staffing::new(),
            maintenance,
            checked_at,
        }
    }

    /// Settings have changed: what failed may work now.
    pub fn look_again(&mut self) {
        self.leases.look_at = DateTime::UNIX_EPOCH;
        self.alarms.look_at = DateTime::UNIX_EPOCH;
        self.staffing.look_at = DateTime::UNIX_EPOCH;
    }

    /// There may be something to run in the database itself, or to stop.
    pub fn note_work(&mut self) {
        self.staffing.look_at = DateTime::UNIX_EPOCH;
    }

    /// Lets the tasks that are due have their turn. The dispatcher is busy again at `busy_at`. What is due up to
    /// `until` is looked at as well: one wake-up instead of two.
    pub fn run_once(
        &mut self,
        context: &mut WorkerContext,
        until: DateTime<Utc>,
        busy_at: DateTime<Utc>,
    ) -> Result<(), Exit> {
        // Before the leases: those of executors that are gone end here.
        if shared::take_work(context.slot) {
            self.note_work();
        }
        let now = time::now();
        if self
            .staffing
            .turn(now, until, DateTime::<Utc>::MAX_UTC)
            .is_some()
        {
            let outcome = self.executors.run(context, now);
            if let Ok((_, true)) = outcome {
                self.lease_expiry.look_everywhere();
                self.leases.look_at = now;
            }
            self.staffing
                .note(context, outcome.map(|(look_at, _)| look_at), now)?;
        }
        let now = time::now();
        if let Some(turn) = self.leases.turn(now, until, busy_at) {
            let outcome = self.lease_expiry.run(context, turn, now);
            self.leases.note(context, outcome, now)?;
        }
        let now = time::now();
        if let Some(task) = &mut self.recovery
            && task.turn(now, until, busy_at).is_some()
        {
            let outcome = lease_expiry::give_up_abandoned(context);
            let is_done = outcome.is_ok();
            task.note(context, outcome.map(|()| now), now)?;
            if is_done {
                self.recovery = None;
            }
        }
        let now = time::now();
        if self.alarms.turn(now, until, busy_at).is_some() {
            let outcome = self.look_at_alarms(context, now);
            self.alarms.note(context, outcome, now)?;
        }
        let now = time::now();
        if self.maintenance.turn(now, now, busy_at).is_some() {
            let outcome = maintenance::request_if_needed(context, now);
            self.checked_at = now;
            let outcome = outcome.map(|()| after(now, CHECK_EVERY));
            self.maintenance.note(context, outcome, now)?;
        }
        // A lease that has expired may be of something that an executor runs again.
        if shared::take_work(context.slot) {
            self.note_work();
        }
        Ok(())
    }

    /// Returns when to look again.
    fn look_at_alarms(
        &mut self,
        context: &mut WorkerContext,
        now: DateTime<Utc>,
    ) -> Result<DateTime<Utc>, Interruption> {
        let next = context.transaction(c"pg_recur dispatcher", move || alarms::check(now))?;
        self.next_alarm = next.unwrap_or(DateTime::<Utc>::MAX_UTC);
        // A row that is locked by a session that changes its action is looked at a little later. An alarm that is set
        // during the sleep is found after the sleep.
        let soon = after(now, ALARMS_LOCKED_ELSEWHERE);
        let late = after(now, settings::check_interval());
        Ok(self.next_alarm.max(soon).min(late))
    }

    /// When a task wants its turn. The look for maintenance waits until the dispatcher wakes for something else.
    pub fn next(&self, busy_at: DateTime<Utc>) -> DateTime<Utc> {
        let tasks = [&self.leases, &self.alarms];
        let wanted = tasks.map(|task| task.wants_turn_at(busy_at));
        let next = wanted[0].min(wanted[1]);
        // Where there is nothing that the database runs, the look waits as well.
        match self.executors.are_in_use() || self.staffing.look_at == DateTime::UNIX_EPOCH {
            true => next.min(self.staffing.look_at),
            false => next,
        }
    }

    /// When a lease ends, or an alarm could be raised, as far as is known.
    pub fn next_instant(&self) -> DateTime<Utc> {
        self.lease_expiry.next_end().min(self.next_alarm)
    }

    pub fn checked_at(&self) -> DateTime<Utc> {
        self.checked_at
    }
}
