//! The model: actions and dispatches in memory, and what calls do to them.
//!
//! It is noon whenever something is called, and schedules fire at midnight or at six: nothing is due at the instant of
//! a call, so that seconds make no difference.

use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Who calls: two roles that see what is their own, and an admin.
pub const ROLES: [&str; 3] = ["alice", "bob", "chief"];
pub const ADMIN: &str = "chief";

pub type Instant = DateTime<Utc>;

#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    pub owner: &'static str,
    pub name: &'static str,
    /// It fires every day at this hour.
    pub hour: i64,
    pub payload: i64,
    pub misfire: &'static str,
    pub overlap: &'static str,
    pub max_runs: Option<i64>,
    pub max_attempts: i32,
    pub priority: i32,
    pub enabled: bool,
    pub next_run_at: Option<Instant>,
    pub run_count: i64,
    pub paused_reason: Option<&'static str>,
    pub ended_reason: Option<&'static str>,
    pub completed: i64,
    pub failed: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Pending,
    Running,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Running => "running",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }

    pub fn is_live(self) -> bool {
        matches!(self, Status::Pending | Status::Running)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Dispatch {
    pub action: Option<Uuid>,
    pub owner: &'static str,
    pub trigger: &'static str,
    pub scheduled_at: Instant,
    pub payload: i64,
    pub status: Status,
    pub attempt: i32,
    pub releases: i32,
    pub max_attempts: i32,
    pub priority: i32,
    pub available_at: Instant,
    pub created_at: Instant,
    pub started_at: Option<Instant>,
    pub lease_expires_at: Option<Instant>,
    pub cancel_requested: bool,
    pub dedup_key: Option<&'static str>,
}

pub struct World {
    /// Noon of the day that it is.
    pub now: Instant,
    pub actions: BTreeMap<Uuid, Action>,
    pub dispatches: BTreeMap<Uuid, Dispatch>,
}

/// What a tick does.
#[derive(Debug, Default, PartialEq)]
pub struct Ticked {
    pub dispatched: i64,
    pub skipped: i64,
    pub ended: i64,
}

pub fn days(days: i64) -> TimeDelta {
    TimeDelta::days(days)
}

impl World {
    pub fn sees(&self, role: &str, owner: &str) -> bool {
        role == ADMIN || role == owner
    }

    /// The next time that it is this hour: tomorrow, since it is noon.
    pub fn next_at(&self, hour: i64) -> Instant {
        self.now + TimeDelta::hours(12 + hour)
    }

    /// The occurrences from one instant to another, both included, at this hour.
    pub fn occurrences(&self, hour: i64, from: Instant, until: Instant) -> Vec<Instant> {
        let midnight = from.date_naive().and_time(chrono::NaiveTime::MIN).and_utc();
        let first = midnight + TimeDelta::hours(hour);
        let days = (0..).map(|day| first + TimeDelta::days(day));
        days.skip_while(|at| *at < from)
            .take_while(|at| *at <= until)
            .collect()
    }

    pub fn cancel_pending(&mut self, action: Uuid) {
        for dispatch in self.dispatches.values_mut() {
            if dispatch.action == Some(action) && dispatch.status == Status::Pending {
                dispatch.status = Status::Cancelled;
            }
        }
    }

    /// Ends a dispatch, and counts it in its action.
    pub fn end(&mut self, id: Uuid, status: Status) {
        let Some(dispatch) = self.dispatches.get_mut(&id) else {
            return;
        };
        dispatch.status = status;
        let action = dispatch
            .action
            .and_then(|action| self.actions.get_mut(&action));
        if let Some(action) = action {
            action.completed += i64::from(status == Status::Completed);
            action.failed += i64::from(status == Status::Failed);
        }
    }

    fn new_dispatch(
        &self,
        id: Uuid,
        action: &Action,
        trigger: &'static str,
        at: Instant,
    ) -> Dispatch {
        Dispatch {
            action: Some(id),
            owner: action.owner,
            trigger,
            scheduled_at: at,
            payload: action.payload,
            status: Status::Pending,
            attempt: 0,
            releases: 0,
            max_attempts: action.max_attempts,
            priority: action.priority,
            available_at: at,
            created_at: self.now,
            started_at: None,
            lease_expires_at: None,
            cancel_requested: false,
            dedup_key: None,
        }
    }

    /// A dispatch of an action, by hand or for an occurrence.
    pub fn add(&mut self, dispatch: Uuid, action: Uuid, trigger: &'static str, at: Instant) {
        let made = self.new_dispatch(action, &self.actions[&action], trigger, at);
        self.dispatches.insert(dispatch, made);
    }

    /// Does any dispatch of an occurrence exist, finished or not?
    pub fn has_dispatch(&self, action: Uuid, at: Instant) -> bool {
        let of = |one: &Dispatch| {
            one.action == Some(action) && one.scheduled_at == at && one.trigger != "manual"
        };
        self.dispatches.values().any(of)
    }

    /// Dispatches what is due. `id_of` gives the id of an occurrence's dispatch.
    pub fn tick(&mut self, id_of: impl Fn(Uuid, Instant) -> Uuid) -> Ticked {
        let mut ticked = Ticked::default();
        let due: Vec<Uuid> = self
            .actions
            .iter()
            .filter(|(_, one)| one.next_run_at.is_some_and(|next| next <= self.now))
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            self.tick_one(id, &id_of, &mut ticked);
        }
        ticked
    }

    fn tick_one(&mut self, id: Uuid, id_of: &impl Fn(Uuid, Instant) -> Uuid, ticked: &mut Ticked) {
        let action = self.actions[&id].clone();
        let Some(next) = action.next_run_at else {
            return;
        };
        let missed = self.occurrences(action.hour, next, self.now);
        let left = action
            .max_runs
            .map_or(usize::MAX, |most| (most - action.run_count).max(0) as usize);
        let mut fire = missed.clone();
        if action.misfire == "once" {
            ticked.skipped += fire.len() as i64 - 1;
            fire.drain(..fire.len() - 1);
        }
        fire.truncate(left);
        // What is made by hand is made some seconds after noon.
        let a_little_later = self.now + TimeDelta::hours(1);
        let an_hour_ago = self.now - TimeDelta::hours(1);
        let unfinished = |status: Status| {
            self.dispatches.values().any(|one| {
                let waits_for_retry = status == Status::Pending && one.attempt > one.releases;
                one.action == Some(id)
                    && one.status == status
                    && one.scheduled_at <= a_little_later
                    && (!waits_for_retry || one.scheduled_at > an_hour_ago)
            })
        };
        let (pending, running) = (unfinished(Status::Pending), unfinished(Status::Running));
        let before = fire.len();
        let mut cancels = false;
        match action.overlap {
            "skip" if pending || running => fire.clear(),
            "queue_one" if pending => fire.clear(),
            "skip" | "queue_one" => fire.truncate(1),
            "cancel_previous" => {
                fire.drain(..fire.len().saturating_sub(1));
                cancels = !fire.is_empty();
            }
            _ => {}
        }
        ticked.skipped += (before - fire.len()) as i64;
        if cancels {
            self.cancel_pending(id);
            for one in self.dispatches.values_mut() {
                one.cancel_requested |= one.action == Some(id) && one.status == Status::Running;
            }
        }
        for at in &fire {
            ticked.dispatched += 1;
            self.add(id_of(id, *at), id, "schedule", *at);
        }
        let upcoming = self.next_at(action.hour);
        if let Some(action) = self.actions.get_mut(&id) {
            action.run_count += fire.len() as i64;
            action.next_run_at = Some(upcoming);
            if action.max_runs.is_some_and(|most| action.run_count >= most) {
                ticked.ended += 1;
                action.enabled = false;
                action.next_run_at = None;
                action.ended_reason = Some("exhausted");
            }
        }
    }
}
