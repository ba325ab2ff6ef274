//! Who runs what the database itself runs: the first dispatcher starts executors while there is something to run, looks
//! after what they leave behind, and stops what is cancelled.
//!
//! Where more owners wait than executors are allowed, those come first that have waited longest, each with one
//! executor; an executor that has served its owner for a while then leaves. Executors take only slots of the server
//! that are neither a dispatcher's nor of those that `recur.max_workers` leaves to others; one, where that leaves none.

use super::backoff::Backoff;
use super::context::{Interruption, WorkerContext};
use crate::actions;
use crate::commands::armed::{self, Armed};
use crate::commands::handlers;
use crate::execution::reconcile::{self, Waiting};
use crate::pg::lock_timeout::LockTimeout;
use crate::pg::time::after;
use crate::pg::{self, catalog, compat};
use crate::runtime::settings;
use crate::runtime::shared::WaitsFor;
use crate::runtime::shared::executors::{self, ExecutorInfo, ExecutorReservation, Post};
use chrono::{DateTime, Utc};
use pgrx::bgworkers::BackgroundWorkerBuilder;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::collections::HashMap;
use std::time::Duration;

/// When to look again while some wait: for an executor to leave, or for a slot.
const SOMEBODY_WAITS: Duration = Duration::from_millis(250);
/// When to look again whatever is known.
const SAFETY_NET: Duration = Duration::from_secs(60);
/// Of more owners than this, the rest are looked at in the next turn.
const OWNERS_AT_ONCE: usize = 500;
const LONGEST_LOCK_WAIT_MILLIS: i32 = 50;

pub struct Staffing {
    /// Of more owners than fit into one look: where to begin.
    from: usize,
    /// Owners as whom no process could connect: not before then.
    failed: HashMap<i32, (Backoff, DateTime<Utc>)>,
    reflag_at: DateTime<Utc>,
    are_in_use: bool,
}

/// What one look has found.
struct Found {
    waiting: Vec<Waiting>,
    ended: usize,
    has_more: bool,
}

impl Staffing {
    pub fn new() -> Staffing {
        Staffing {
            from: 0,
            failed: HashMap::new(),
            reflag_at: DateTime::UNIX_EPOCH,
            are_in_use: false,
        }
    }

    /// Has an owner something that the database runs, as far as is known since the last look?
    pub fn are_in_use(&self) -> bool {
        self.are_in_use
    }

    /// Starts executors where they are needed; returns when to look again, and whether leases were ended.
    pub fn run(
        &mut self,
        context: &mut WorkerContext,
        now: DateTime<Utc>,
    ) -> Result<(DateTime<Utc>, bool), Interruption> {
        let from = self.from;
        let reflags = self.reflag_at <= now;
        let found =
            context.transaction(c"pg_recur dispatcher", move || look(from, reflags, now))?;
        self.are_in_use = found.is_some();
        let Some(found) = found else {
            return Ok((after(now, SAFETY_NET), false));
        };
        if reflags {
            self.reflag_at = after(now, SAFETY_NET);
        }
        self.from = match found.has_more {
            true => self.from + OWNERS_AT_ONCE,
            false => 0,
        };
        self.note_failures(context, now);
        let waits_for = self.staff(context, &found.waiting, now);
        executors::set_waiting(context.database(), waits_for);
        let again = match waits_for != WaitsFor::Nothing || found.has_more {
            true => SOMEBODY_WAITS,
            false => settings::check_interval(),
        };
        Ok((after(now, again), found.ended > 0))
    }

    /// As whom no process could connect is tried again a little later.
    fn note_failures(&mut self, context: &WorkerContext, now: DateTime<Utc>) {
        for owner_id in executors::take_failures(context.database()) {
            let (backoff, not_before) = self
                .failed
                .entry(owner_id)
                .or_insert_with(|| (Backoff::new(), now));
            let pause = backoff.pause();
            *not_before = after(now, pause);
            warning!(
                "pg_recur dispatcher: no executor could connect database={:?} owner={owner_id} retry_in={pause:?}",
                context.database_name
            );
        }
    }

    /// Gives owners that wait an executor, first one to each, then more; returns what some still wait for.
    fn staff(
        &mut self,
        context: &WorkerContext,
        waiting: &[Waiting],
        now: DateTime<Utc>,
    ) -> WaitsFor {
        let database = context.database();
        let present = executors::executors();
        let own: Vec<&ExecutorInfo> = present
            .iter()
            .filter(|one| one.post.database == database)
            .collect();
        for one in own
            .iter()
            .filter(|one| one.is_idle || one.attempt.is_some())
        {
            self.failed.remove(&one.post.owner_id);
        }
        let mut room = settings::executors().saturating_sub(own.len());
        let mut started: HashMap<i32, usize> = HashMap::new();
        let mut waits_for = WaitsFor::Nothing;
        for one in waiting {
            let owner_id = one.armed.owner_id;
            let is_served = own.iter().any(|present| present.post.owner_id == owner_id);
            let failed = self.failed.get(&owner_id);
            if is_served || failed.is_some_and(|(_, not_before)| *not_before > now) {
                continue;
            }
            if room == 0 {
                let idle = own.iter().find(|present| present.is_idle);
                idle.iter()
                    .for_each(|idle| executors::ask_executor_to_leave(idle.slot));
                waits_for = WaitsFor::Executor;
                break;
            }
            match start(context, one.armed) {
                true => {
                    room -= 1;
                    started.insert(owner_id, 1);
                }
                false => {
                    executors::ask_idle_executor_to_leave();
                    waits_for = WaitsFor::Slot;
                }
            }
        }
        for one in waiting {
            let owner_id = one.armed.owner_id;
            executors::wake_idle(database, owner_id);
            let is_coming = |present: &&&ExecutorInfo| {
                present.post.owner_id == owner_id && (present.is_idle || present.pid.is_none())
            };
            let coming = own.iter().filter(is_coming).count();
            let mut coming = coming + started.get(&owner_id).copied().unwrap_or_default();
            let failed = self.failed.get(&owner_id);
            let may_have_more = waits_for == WaitsFor::Nothing
                && failed.is_none_or(|(_, not_before)| *not_before <= now);
            while may_have_more && room > 0 && coming < one.dispatches && start(context, one.armed)
            {
                room -= 1;
                coming += 1;
            }
        }
        waits_for
    }
}

fn start(context: &WorkerContext, armed: Armed) -> bool {
    let post = Post {
        database: context.database(),
        owner_id: armed.owner_id,
        role: armed.role,
    };
    let Some(reservation) = executors::reserve(post, settings::executor_slots()) else {
        return false;
    };
    let started = start_process(&context.database_name, reservation);
    if !started {
        executors::release(reservation);
    }
    started
}

fn start_process(database: &str, reservation: ExecutorReservation) -> bool {
    let worker = BackgroundWorkerBuilder::new(&format!("pg_recur executor {database}"))
        .set_type("pg_recur executor")
        .set_library("pg_recur")
        .set_function("pg_recur_executor_main")
        .enable_spi_access()
        .set_argument(Some(pg_sys::Datum::from(reservation.to_argument())))
        .set_notify_pid(pg::my_pid())
        .set_restart_time(None)
        .load_dynamic();
    worker.is_ok()
}

/// None if there is nothing that the database runs.
fn look(from: usize, reflags: bool, now: DateTime<Utc>) -> Option<Found> {
    let armed = armed::owners();
    if armed.is_empty() {
        return None;
    }
    let _timeout = LockTimeout::of_millis(LONGEST_LOCK_WAIT_MILLIS);
    let ended = reconcile::look_after_runs();
    if reflags {
        let mut owners: Vec<i32> = handlers::all().iter().map(|one| one.owner_id).collect();
        owners.dedup();
        owners.into_iter().for_each(handlers::reflag);
    }
    if settings::executors() == 0 {
        return Some(Found {
            waiting: Vec::new(),
            ended,
            has_more: false,
        });
    }
    let page: Vec<Armed> = armed
        .iter()
        .copied()
        .skip(from)
        .take(OWNERS_AT_ONCE)
        .collect();
    let has_more = from + OWNERS_AT_ONCE < armed.len();
    let mut waiting = reconcile::waiting(&page, now);
    waiting.retain(|one| is_able(one.armed));
    Some(Found {
        waiting,
        ended,
        has_more,
    })
}

/// Can a process connect as this owner? The SQL of a role that was dropped is stopped.
fn is_able(armed: Armed) -> bool {
    if catalog::role_name(armed.role).is_none() {
        actions::stop_commands(armed.owner_id);
        armed::disarm(vec![armed.owner_id]);
        return false;
    }
    (!compat::NEEDS_LOGIN || compat::can_login(armed.role)) && compat::can_connect(armed.role)
}
