//! The launcher: keeps the workers running in every database that has the extension.
//!
//! The launcher is connected to no database, so it can't see which databases have the extension. It starts a first
//! dispatcher in each. A dispatcher that finds no extension exits with that reason, and the launcher starts no other
//! there until CREATE EXTENSION asks for another look.
//!
//! `recur_core::service` decides which database gets a process and which is visited next; its head comment has the
//! states. Here its decisions are carried out, with what it needs to know read from shared memory.

use super::databases::{self, Database};
use super::registry::{Refused, Registry};
use crate::pg::{latch, signals, time, transaction};
use crate::runtime::settings;
use crate::runtime::shared::{self, DatabaseEntry, Missing, NEVER};
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::pg_sys;
use pgrx::prelude::*;
use recur_core::service::{self, Plan, Say, Server, Shortage};
use std::collections::HashMap;
use std::time::Duration;

/// Visits begin at most ten times a second: each takes some 20 ms of CPU time.
const BETWEEN_VISITS: TimeDelta = TimeDelta::milliseconds(100);
/// A visit begins this long before the instant for which it is made: a process takes a while to start.
const AHEAD: TimeDelta = TimeDelta::milliseconds(100);
/// A database is left alone for at least this long.
const BETWEEN_VISITS_TO_ONE: TimeDelta = TimeDelta::milliseconds(250);
/// Visits that find nothing due, in rounds, begin at most twice a second.
const ROUND_PER_DATABASE: Duration = Duration::from_millis(500);
/// After the server has refused a process, the launcher tries again: with none at all, sooner.
const REFUSED_FOR: (TimeDelta, TimeDelta) = (TimeDelta::seconds(1), TimeDelta::seconds(10));

pub fn main() -> ! {
    // SAFETY: a background worker connects once, at its start. Without a name, it can read the shared catalogs only.
    unsafe {
        pg_sys::BackgroundWorkerInitializeConnection(std::ptr::null(), std::ptr::null(), 0);
    }
    shared::register_launcher();
    log!("pg_recur launcher: started");
    let mut launcher = Launcher {
        registry: Registry::adopt(),
        refused: None,
        next_visit: DateTime::UNIX_EPOCH,
        missing: Missing::default(),
        shortage: Shortage::default(),
        say_at: None,
        is_stranded: false,
    };
    loop {
        signals::reload_settings();
        let sleep = launcher.run_once(time::now());
        latch::wait(sleep);
    }
}

struct Launcher {
    registry: Registry,
    /// The server had no slot for more than this number of processes, and is not asked again before.
    refused: Option<(usize, DateTime<Utc>)>,
    next_visit: DateTime<Utc>,
    missing: Missing,
    /// What was said of it.
    shortage: Shortage,
    /// When more is to be said, if it is so then.
    say_at: Option<DateTime<Utc>>,
    /// Has the server had no slot at all?
    is_stranded: bool,
}

impl Launcher {
    /// Starts and moves workers as needed; returns how long to sleep.
    fn run_once(&mut self, now: DateTime<Utc>) -> Duration {
        let found = match transaction::run(c"pg_recur launcher", databases::connectable) {
            Ok(databases) => databases,
            Err(failure) => {
                warning!(
                    "pg_recur launcher: could not read the list of databases sqlstate={} message={:?}",
                    failure.sqlstate,
                    failure.message
                );
                return settings::check_interval();
            }
        };
        self.registry.note_exits(now);
        self.registry.forget_gone(&found);
        self.registry.note_requests(&shared::take_requests());
        let is_wanted = |database: &&Database| {
            settings::enabled_on_server() && settings::serves_database(&database.name)
        };
        let (vacated, wanted): (Vec<&Database>, Vec<&Database>) = found
            .iter()
            .filter(is_wanted)
            .partition(|database| shared::is_vacated(database.oid));
        for database in &wanted {
            self.registry.keep(database);
        }
        // A refused start, or a dispatcher that is to roam from now on, makes another plan.
        let mut look_at = None;
        for _ in 0..4 {
            let (plan, databases) = self.plan(&wanted, now);
            look_at = plan.look_at;
            let is_done = self.carry_out(&plan, &wanted, now);
            self.publish_visits(&databases);
            self.note_missing(&databases, &vacated, now);
            if is_done && look_at.is_none_or(|at| at > now) {
                break;
            }
        }
        let retry_at = self.refused.map(|(_, until)| until);
        let next = [look_at, retry_at, self.say_at].into_iter().flatten().min();
        let sleep = next.map(|next| (next - time::now()).to_std().unwrap_or_default());
        let sleep = sleep.unwrap_or(Duration::MAX);
        sleep.min(settings::check_interval())
    }

    fn capacity(&mut self, now: DateTime<Utc>) -> usize {
        // A clock that was set back does not delay the next try.
        self.refused = self
            .refused
            .filter(|(_, until)| now < *until && *until - now <= REFUSED_FOR.1);
        let limit = settings::max_workers();
        self.refused
            .map_or(limit, |(refused, _)| refused.min(limit))
    }

    fn plan(&mut self, wanted: &[&Database], now: DateTime<Utc>) -> (Plan, Vec<service::Database>) {
        let kept = shared::databases();
        let kept: HashMap<u32, &DatabaseEntry> = kept
            .iter()
            .map(|one| (u32::from(one.database), one))
            .collect();
        let lacking = wanted.len().saturating_sub(self.registry.running());
        let round = settings::check_interval() * 2;
        let round = round.max(ROUND_PER_DATABASE * u32::try_from(lacking).unwrap_or(u32::MAX));
        let round = TimeDelta::from_std(round).unwrap_or(TimeDelta::MAX);
        let databases = wanted.iter().filter_map(|database| {
            let id = u32::from(database.oid);
            let entry = kept.get(&id).copied();
            self.registry.describe(id, entry, now, |left_at| {
                let next_at = entry.map_or(NEVER, |entry| entry.next_at);
                visit_at(left_at.min(now), next_at, round)
            })
        });
        let databases: Vec<service::Database> = databases.collect();
        let server = Server {
            capacity: self.capacity(now),
            running: self.registry.running(),
            maintenance_runs: self.registry.maintenance_runs(),
            dispatchers: u8::try_from(settings::dispatchers()).unwrap_or(1),
            // The same for visits.
            next_visit: self.next_visit.min(now + BETWEEN_VISITS),
        };
        (service::plan(server, &databases, now), databases)
    }

    /// False if the server has refused a process: then the rest of the plan does not hold any more.
    fn carry_out(&mut self, plan: &Plan, wanted: &[&Database], now: DateTime<Utc>) -> bool {
        for step in &plan.steps {
            match self.registry.carry_out(*step, wanted) {
                Ok(is_visit) => {
                    if is_visit {
                        self.next_visit = now + BETWEEN_VISITS;
                    }
                }
                Err(Refused) => {
                    shared::executors::ask_any_executor_to_leave();
                    self.warn_if_stranded();
                    let running = self.registry.running();
                    let pause = if running == 0 {
                        REFUSED_FOR.0
                    } else {
                        REFUSED_FOR.1
                    };
                    self.refused = Some((running, now + pause));
                    return false;
                }
            }
        }
        true
    }

    /// Says, once, that there is no process at all.
    fn warn_if_stranded(&mut self) {
        let is_stranded = self.registry.running() == 0;
        if is_stranded && !self.is_stranded {
            warning!(
                "pg_recur launcher: no database is served, because there is no free background worker: raise \
                 max_worker_processes"
            );
        }
        self.is_stranded = is_stranded;
    }

    /// For `recur.workers`.
    fn publish_visits(&self, databases: &[service::Database]) {
        for database in databases {
            let visit_at = match self.registry.has_process(database.id) {
                true => NEVER,
                false => time::to_micros(database.visit_at.max(database.not_before)),
            };
            shared::plan_visit(pg_sys::Oid::from(database.id), visit_at);
        }
    }

    /// Says what the server lacks: once, and again when it lacks more. A database that a command needs without
    /// connections counts as well: it will be back in a moment.
    fn note_missing(
        &mut self,
        databases: &[service::Database],
        vacated: &[&Database],
        now: DateTime<Utc>,
    ) {
        let known = databases.iter().filter(|one| one.is_known).count()
            + shared::databases()
                .iter()
                .filter(|kept| kept.is_served && vacated.iter().any(|one| one.oid == kept.database))
                .count();
        let capacity = self.capacity(now);
        let missing = match known > capacity {
            true => self.what_is_missing(known, capacity),
            false => Missing::default(),
        };
        self.say_at = None;
        match self.shortage.note(missing.max_worker_processes, now) {
            Say::Nothing => {}
            Say::Later(at) => self.say_at = Some(at),
            Say::Lacking => warning!(
                "pg_recur launcher: databases={} share processes={}: there are no more background workers; \
                 max_worker_processes = {} is enough for all",
                missing.databases,
                missing.processes,
                missing.max_worker_processes
            ),
            Say::Enough => log!("pg_recur launcher: each database has a process of its own again"),
        }
        if missing != self.missing {
            self.missing = missing;
            shared::set_missing(missing);
        }
    }

    fn what_is_missing(&self, databases: usize, capacity: usize) -> Missing {
        let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let slots = settings::max_worker_processes();
        // One more for visits and for maintenance.
        let needed = number(databases * settings::dispatchers() + 1);
        let for_others = match settings::limits_workers() && self.refused.is_none() {
            true => settings::SLOTS_FOR_OTHERS,
            false => slots
                .saturating_sub(number(capacity))
                .max(settings::SLOTS_FOR_OTHERS),
        };
        Missing {
            databases: number(databases),
            processes: number(capacity),
            max_worker_processes: slots.max(needed.saturating_add(for_others)),
        }
    }
}

/// When a database is to be visited that was left at `left_at`.
fn visit_at(
    left_at: DateTime<Utc>,
    next_at: pg_sys::TimestampTz,
    round: TimeDelta,
) -> DateTime<Utc> {
    let round_at = left_at
        .checked_add_signed(round)
        .unwrap_or(DateTime::<Utc>::MAX_UTC);
    let next_at = match next_at {
        NEVER => return round_at,
        next_at => time::from_micros(next_at).unwrap_or(DateTime::UNIX_EPOCH),
    };
    (next_at - AHEAD)
        .max(left_at + BETWEEN_VISITS_TO_ONE)
        .min(round_at)
}
