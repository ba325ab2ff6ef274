//! The launcher: keeps the workers running in every database that has the extension.
//!
//! The launcher is connected to no database, so it can't see which databases have the extension. It starts a first
//! dispatcher in each. A dispatcher that finds no extension exits with that reason, and the launcher starts no other
//! there until CREATE EXTENSION asks for another look. Where the first dispatcher finds the extension, the other
//! workers follow.
//!
//! Workers outlive their launcher. The server restarts a launcher that was terminated, and the new one adopts the
//! running workers: each of them has an entry in shared memory.

use super::backoff::Backoff;
use super::databases::{self, Database};
use crate::pg::{self, latch, signals, transaction};
use crate::runtime::shared::{self, Exit, WorkerKind};
use crate::runtime::{settings, stats};
use pgrx::bgworkers::{BackgroundWorkerBuilder, BackgroundWorkerStatus, DynamicBackgroundWorker};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub fn main() -> ! {
    // SAFETY: a background worker connects once, at its start. Without a name, it can read the shared catalogs only.
    unsafe {
        pg_sys::BackgroundWorkerInitializeConnection(std::ptr::null(), std::ptr::null(), 0);
    }
    shared::register_launcher();
    log!("pg_recur launcher: started");
    let mut registry = Registry::adopt(Instant::now());
    loop {
        signals::reload_settings();
        let sleep = registry.run_once(Instant::now());
        latch::wait(sleep);
    }
}

/// What is known of each worker that a database may have.
struct Registry {
    entries: BTreeMap<(u32, WorkerKind), WorkerEntry>,
}

const FIRST: WorkerKind = WorkerKind::Dispatcher(0);

/// The workers of a database, the first dispatcher first.
fn kinds() -> impl Iterator<Item = WorkerKind> {
    let dispatchers = u8::try_from(settings::dispatchers()).unwrap_or(1);
    (0..dispatchers)
        .map(WorkerKind::Dispatcher)
        .chain([WorkerKind::Maintenance])
}

enum WorkerEntry {
    /// The worker is to be started: the database may have the extension.
    Wanted {
        backoff: Backoff,
        not_before: Instant,
    },
    Running {
        worker: Worker,
        slot: usize,
        since: Instant,
        backoff: Backoff,
    },
    /// The database does not have the extension.
    Idle,
}

/// How the launcher sees that a worker has ended.
enum Worker {
    /// Started by this launcher: the server reports the end.
    Started(DynamicBackgroundWorker),
    /// Started by an earlier launcher: at its end, the worker leaves its slot.
    Adopted,
}

impl Worker {
    fn has_ended(&self, slot: usize) -> bool {
        match self {
            Worker::Started(worker) => matches!(worker.pid(), Err(BackgroundWorkerStatus::Stopped)),
            Worker::Adopted => !shared::is_occupied(slot),
        }
    }
}

/// A worker that ran for this long was healthy: its end starts a new series of pauses.
const HEALTHY_AFTER: Duration = Duration::from_secs(60);

impl Registry {
    /// The workers that an earlier launcher left running.
    fn adopt(now: Instant) -> Registry {
        let adopted = shared::adopt_workers().into_iter().map(|adopted| {
            let entry = WorkerEntry::Running {
                worker: Worker::Adopted,
                slot: adopted.slot,
                since: now,
                backoff: Backoff::new(),
            };
            ((u32::from(adopted.database), adopted.kind), entry)
        });
        Registry {
            entries: adopted.collect(),
        }
    }

    /// Starts the workers that are missing; returns how long to sleep.
    fn run_once(&mut self, now: Instant) -> Duration {
        let databases = match transaction::run(c"pg_recur launcher", databases::connectable) {
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
        let requests = shared::take_requests();
        self.note_exits(now);
        self.forget_gone(&databases);
        let mut sleep = settings::check_interval();
        for database in &databases {
            let asked = requests.everywhere || requests.databases.contains(&database.oid);
            let is_wanted = settings::enabled()
                && settings::serves_database(&database.name)
                && !shared::is_vacated(database.oid);
            for kind in kinds() {
                let is_first = kind == FIRST;
                if !is_first && !self.is_served(database) {
                    continue;
                }
                let key = (u32::from(database.oid), kind);
                let entry = self
                    .entries
                    .entry(key)
                    .or_insert_with(|| WorkerEntry::wanted(now));
                // Where the first dispatcher has found the extension, the other workers find it, too.
                if (asked || !is_first) && matches!(entry, WorkerEntry::Idle) {
                    *entry = WorkerEntry::wanted(now);
                }
                if is_wanted && let Some(wait) = entry.start(database, kind, now) {
                    sleep = sleep.min(wait);
                }
            }
        }
        sleep
    }

    fn is_served(&self, database: &Database) -> bool {
        match self.entries.get(&(u32::from(database.oid), FIRST)) {
            Some(WorkerEntry::Running { slot, .. }) => shared::is_serving(*slot),
            _ => false,
        }
    }

    /// Drops the entries of databases that no longer exist.
    fn forget_gone(&mut self, databases: &[Database]) {
        self.entries.retain(|(oid, kind), entry| {
            let stays = matches!(entry, WorkerEntry::Running { .. })
                || databases.iter().any(|db| u32::from(db.oid) == *oid);
            if !stays && *kind == FIRST {
                stats::forget(pg_sys::Oid::from(*oid));
            }
            stays
        });
    }

    /// Updates the entries of workers that have ended.
    fn note_exits(&mut self, now: Instant) {
        for entry in self.entries.values_mut() {
            let WorkerEntry::Running {
                worker,
                slot,
                since,
                backoff,
            } = entry
            else {
                continue;
            };
            if !worker.has_ended(*slot) {
                continue;
            }
            if now.duration_since(*since) > HEALTHY_AFTER {
                backoff.reset();
            }
            *entry = match shared::release_slot(*slot) {
                Exit::NothingToDo => WorkerEntry::Idle,
                Exit::Asked => WorkerEntry::wanted(now),
                Exit::Unexplained => {
                    let mut backoff = *backoff;
                    WorkerEntry::Wanted {
                        not_before: now + backoff.pause(),
                        backoff,
                    }
                }
            };
        }
    }
}

impl WorkerEntry {
    fn wanted(now: Instant) -> WorkerEntry {
        WorkerEntry::Wanted {
            backoff: Backoff::new(),
            not_before: now,
        }
    }

    /// Starts the worker if it is wanted and its pause is over; returns how long a pause still lasts.
    fn start(&mut self, database: &Database, kind: WorkerKind, now: Instant) -> Option<Duration> {
        let WorkerEntry::Wanted {
            backoff,
            not_before,
        } = self
        else {
            return None;
        };
        if *not_before > now {
            return Some(*not_before - now);
        }
        match start_worker(database, kind) {
            Ok((worker, slot)) => {
                *self = WorkerEntry::Running {
                    worker: Worker::Started(worker),
                    slot,
                    since: now,
                    backoff: *backoff,
                };
                None
            }
            Err(reason) => {
                let pause = backoff.pause();
                warning!(
                    "pg_recur launcher: could not start a worker database={:?} kind={} reason={reason:?} \
                     retry_in={pause:?}",
                    database.name,
                    kind.name()
                );
                *not_before = now + pause;
                Some(pause)
            }
        }
    }
}

fn start_worker(
    database: &Database,
    kind: WorkerKind,
) -> Result<(DynamicBackgroundWorker, usize), &'static str> {
    let reservation =
        shared::reserve_slot(database.oid, kind).ok_or("more databases than pg_recur can serve")?;
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
        Ok(worker) => Ok((worker, reservation.slot)),
        Err(_) => {
            shared::release_slot(reservation.slot);
            Err("no free background worker: raise max_worker_processes")
        }
    }
}
