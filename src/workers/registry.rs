//! The workers that run, and what is known of each database.
//!
//! Workers outlive their launcher. The server restarts a launcher that was terminated, and the new one adopts the
//! running workers: each of them has an entry in shared memory.

use super::backoff::Backoff;
use super::databases::Database;
use crate::pg;
use crate::pg::time::{self, after};
use crate::runtime::shared::{self, DatabaseEntry, Exit, Requests, WorkerKind, WorkerState};
use crate::runtime::stats;
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::bgworkers::{BackgroundWorkerBuilder, BackgroundWorkerStatus, DynamicBackgroundWorker};
use pgrx::pg_sys;
use recur_core::service::{self, Process, Role, Step};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A worker that ran for this long was healthy: its end starts a new series of pauses.
const HEALTHY_AFTER: Duration = Duration::from_secs(60);
/// No pause is longer.
const LONGEST_PAUSE: TimeDelta = TimeDelta::minutes(1);

pub struct Registry {
    workers: BTreeMap<(u32, WorkerKind), Running>,
    databases: BTreeMap<u32, Known>,
}

/// What is known of a database.
struct Known {
    /// Does it have no extension?
    is_empty: bool,
    /// Has the extension been created since its first dispatcher was started?
    is_asked_for: bool,
    backoff: Backoff,
    not_before: DateTime<Utc>,
    /// When its last process left.
    left_at: DateTime<Utc>,
    needs_maintenance_since: Option<DateTime<Utc>>,
}

impl Known {
    fn new() -> Known {
        Known {
            is_empty: false,
            is_asked_for: false,
            backoff: Backoff::new(),
            not_before: DateTime::UNIX_EPOCH,
            left_at: DateTime::UNIX_EPOCH,
            needs_maintenance_since: None,
        }
    }
}

struct Running {
    worker: Worker,
    slot: usize,
    since: Instant,
    roams: bool,
}

/// How the launcher sees that a worker has ended.
enum Worker {
    /// Started by this launcher: the server reports the end.
    Started(DynamicBackgroundWorker),
    /// Started by an earlier launcher: at its end, the worker leaves its slot.
    Adopted,
}

impl Running {
    fn has_ended(&self) -> bool {
        match &self.worker {
            Worker::Started(worker) => matches!(worker.pid(), Err(BackgroundWorkerStatus::Stopped)),
            Worker::Adopted => !shared::is_occupied(self.slot),
        }
    }
}

/// The server has no slot for another process.
pub struct Refused;

impl Registry {
    /// The workers that an earlier launcher left running.
    pub fn adopt() -> Registry {
        let adopted = shared::adopt_workers().into_iter().map(|adopted| {
            let running = Running {
                worker: Worker::Adopted,
                slot: adopted.slot,
                since: Instant::now(),
                roams: adopted.roams,
            };
            ((u32::from(adopted.database), adopted.kind), running)
        });
        Registry {
            workers: adopted.collect(),
            databases: BTreeMap::new(),
        }
    }

    pub fn running(&self) -> usize {
        self.workers.len()
    }

    pub fn maintenance_runs(&self) -> bool {
        self.workers
            .keys()
            .any(|(_, kind)| *kind == WorkerKind::Maintenance)
    }

    pub fn has_process(&self, database: u32) -> bool {
        self.workers.contains_key(&(database, WorkerKind::FIRST))
    }

    /// Notes a database that is to be served, if it is new.
    pub fn keep(&mut self, database: &Database) {
        let id = u32::from(database.oid);
        self.databases.entry(id).or_insert_with(|| {
            shared::keep_database(database.oid);
            Known::new()
        });
    }

    /// Drops what is known of databases that no longer exist.
    pub fn forget_gone(&mut self, found: &[Database]) {
        self.databases.retain(|id, _| {
            let oid = pg_sys::Oid::from(*id);
            let stays = found.iter().any(|database| database.oid == oid);
            if !stays {
                stats::forget(oid);
                shared::forget_database(oid);
            }
            stays
        });
    }

    /// The extension may have appeared in databases that did not have it.
    pub fn note_requests(&mut self, requests: &Requests) {
        for (id, known) in &mut self.databases {
            let asked = requests.databases.contains(&pg_sys::Oid::from(*id));
            if asked || requests.everywhere {
                known.is_asked_for = true;
                if known.is_empty {
                    *known = Known::new();
                }
            }
        }
    }

    /// Removes the workers that have ended.
    pub fn note_exits(&mut self, now: DateTime<Utc>) {
        let ended = self
            .workers
            .extract_if(.., |_, running| running.has_ended());
        for ((id, kind), running) in ended {
            let exit = shared::release_slot(running.slot);
            let Some(known) = self
                .databases
                .get_mut(&id)
                .filter(|_| kind != WorkerKind::Maintenance)
            else {
                continue;
            };
            if running.since.elapsed() > HEALTHY_AFTER {
                known.backoff.reset();
            }
            if kind == WorkerKind::FIRST {
                known.left_at = now;
            }
            match exit {
                // It may have looked just before the extension was created.
                Exit::NothingToDo if kind == WorkerKind::FIRST => {
                    known.is_empty = !known.is_asked_for
                }
                Exit::NothingToDo => {}
                Exit::Asked => known.backoff.reset(),
                Exit::Unexplained | Exit::AskedAfterError => {
                    known.not_before = after(now, known.backoff.pause());
                }
            }
        }
    }

    /// What the plan has to know of a database; None if it needs no process.
    pub fn describe(
        &mut self,
        id: u32,
        entry: Option<&DatabaseEntry>,
        now: DateTime<Utc>,
        visit_at: impl Fn(DateTime<Utc>) -> DateTime<Utc>,
    ) -> Option<service::Database> {
        let known = self
            .databases
            .get_mut(&id)
            .filter(|known| !known.is_empty)?;
        let needs_maintenance = entry.is_some_and(|entry| entry.needs_maintenance);
        let since = known.needs_maintenance_since.filter(|_| needs_maintenance);
        known.needs_maintenance_since = needs_maintenance.then(|| since.unwrap_or(now));
        let of_database = (id, WorkerKind::FIRST)..=(id, WorkerKind::Dispatcher(u8::MAX));
        let (mut first, mut others) = (None, Vec::new());
        for ((_, kind), running) in self.workers.range(of_database) {
            let occupation = shared::occupation(running.slot);
            match *kind {
                WorkerKind::Dispatcher(number) if number > 0 => {
                    others.push((number, occupation.asked_to_leave));
                }
                _ => {
                    first = Some(Process {
                        roams: running.roams,
                        is_leaving: occupation.asked_to_leave,
                        next_at: next_instant(occupation.state, occupation.next_at),
                    });
                }
            }
        }
        Some(service::Database {
            id,
            is_known: entry.is_some_and(|entry| entry.is_served),
            first,
            others,
            // A clock that was set back does not lengthen the pause.
            not_before: known.not_before.min(now + LONGEST_PAUSE),
            visit_at: visit_at(known.left_at),
            needs_maintenance_since: known.needs_maintenance_since,
        })
    }

    /// Carries out a step of a plan; true if a visit has begun.
    pub fn carry_out(&mut self, step: Step, databases: &[&Database]) -> Result<bool, Refused> {
        match step {
            Step::Start(id, role) => {
                let (kind, roams) = kind_of(role);
                let is_it = |database: &&&Database| u32::from(database.oid) == id;
                let Some(database) = databases.iter().find(is_it) else {
                    return Ok(false);
                };
                let running = start_worker(database, kind, roams)?;
                self.workers.insert((id, kind), running);
                match (kind, self.databases.get_mut(&id)) {
                    (WorkerKind::Maintenance, _) => shared::note_maintenance(database.oid),
                    (WorkerKind::FIRST, Some(known)) => known.is_asked_for = false,
                    _ => {}
                }
                Ok(roams)
            }
            Step::Leave(id, role) => {
                if let Some(running) = self.workers.get(&(id, kind_of(role).0)) {
                    shared::ask_to_leave(running.slot);
                }
                Ok(false)
            }
            Step::Roam(id, roams) => {
                if let Some(running) = self.workers.get_mut(&(id, WorkerKind::FIRST)) {
                    running.roams = roams;
                    shared::set_roams(running.slot, roams);
                }
                Ok(false)
            }
        }
    }
}

/// When something is due, of a process that sleeps.
fn next_instant(state: WorkerState, next_at: pg_sys::TimestampTz) -> Option<DateTime<Utc>> {
    match state {
        WorkerState::Starting | WorkerState::Working => None,
        WorkerState::Sleeping | WorkerState::BackingOff => {
            Some(time::from_micros(next_at).unwrap_or(DateTime::<Utc>::MAX_UTC))
        }
    }
}

fn kind_of(role: Role) -> (WorkerKind, bool) {
    match role {
        Role::First { roams } => (WorkerKind::FIRST, roams),
        Role::Other(number) => (WorkerKind::Dispatcher(number), false),
        Role::Maintenance => (WorkerKind::Maintenance, false),
    }
}

fn start_worker(database: &Database, kind: WorkerKind, roams: bool) -> Result<Running, Refused> {
    let reservation = shared::reserve_slot(database.oid, kind, roams).ok_or(Refused)?;
    let type_name = format!("pg_recur {}", kind.name());
    let worker = BackgroundWorkerBuilder::new(&format!("{type_name} {}", database.name))
        .set_type(&type_name)
        .set_library("pg_recur")
        .set_function("pg_recur_worker_main")
        .enable_spi_access()
        .set_argument(Some(pg_sys::Datum::from(reservation.to_argument())))
        .set_notify_pid(pg::my_pid())
        .set_restart_time(None)
        .load_dynamic();
    match worker {
        Ok(worker) => Ok(Running {
            worker: Worker::Started(worker),
            slot: reservation.slot,
            since: Instant::now(),
            roams,
        }),
        Err(_) => {
            shared::release_slot(reservation.slot);
            Err(Refused)
        }
    }
}
