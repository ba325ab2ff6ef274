//! The launcher: keeps the workers running in every database that has the extension.
//!
//! It is connected to no database, so it can't see in which ones the extension is. It starts a first dispatcher in
//! each; one that finds nothing to do says so and leaves, and its database is left alone until CREATE EXTENSION there
//! asks for another look. Where the first one has found the extension, the other workers follow.

use super::databases::{self, Database};
use super::{Backoff, reload_settings};
use crate::guc;
use crate::pg::{latch, transaction};
use crate::shared::{self, Departure, Duty};
use crate::stats;
use pgrx::bgworkers::{BackgroundWorkerBuilder, BackgroundWorkerStatus, DynamicBackgroundWorker};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub fn main() -> ! {
    unsafe {
        pg_sys::BackgroundWorkerInitializeConnection(std::ptr::null(), std::ptr::null(), 0);
    }
    shared::register_launcher();
    log!("pg_recur launcher: started");
    let mut fleet = Fleet::default();
    loop {
        reload_settings();
        let sleep = fleet.run_once(Instant::now());
        latch::wait(sleep);
    }
}

/// What is known of each worker that a database may have.
#[derive(Default)]
struct Fleet {
    berths: BTreeMap<(u32, Duty), Berth>,
}

const FIRST: Duty = Duty::Dispatcher(0);

/// The workers of a database, the first dispatcher first.
fn duties() -> impl Iterator<Item = Duty> {
    let dispatchers = u8::try_from(guc::dispatchers()).unwrap_or(1);
    (0..dispatchers)
        .map(Duty::Dispatcher)
        .chain([Duty::Maintenance])
}

enum Berth {
    /// To be started: the extension may be there.
    Wanted {
        backoff: Backoff,
        not_before: Instant,
    },
    Running {
        worker: DynamicBackgroundWorker,
        slot: usize,
        since: Instant,
        backoff: Backoff,
    },
    /// The extension is not there.
    Idle,
}

/// A dispatcher that ran for so long was healthy: its end starts a new series of pauses.
const HEALTHY_AFTER: Duration = Duration::from_secs(60);

impl Fleet {
    /// Brings the running workers in line with the databases; returns how long to sleep.
    fn run_once(&mut self, now: Instant) -> Duration {
        let databases = match transaction::run(c"pg_recur launcher", databases::connectable) {
            Ok(databases) => databases,
            Err(failure) => {
                warning!(
                    "pg_recur launcher: could not read the list of databases sqlstate={} message={:?}",
                    failure.sqlstate,
                    failure.message
                );
                return guc::check_interval();
            }
        };
        let requests = shared::take_requests();
        self.note_departures(now);
        self.forget_gone(&databases);
        let mut sleep = guc::check_interval();
        for database in &databases {
            let asked = requests.everywhere || requests.databases.contains(&database.oid);
            let is_wanted = guc::enabled()
                && guc::serves_database(&database.name)
                && !shared::is_vacated(database.oid);
            for duty in duties() {
                let is_first = duty == FIRST;
                if !is_first && !self.is_served(database) {
                    continue;
                }
                let key = (u32::from(database.oid), duty);
                let berth = self.berths.entry(key).or_insert_with(|| Berth::wanted(now));
                // The others find what the first has found.
                if (asked || !is_first) && matches!(berth, Berth::Idle) {
                    *berth = Berth::wanted(now);
                }
                if is_wanted && let Some(wait) = berth.start(database, duty, now) {
                    sleep = sleep.min(wait);
                }
            }
        }
        sleep
    }

    fn is_served(&self, database: &Database) -> bool {
        match self.berths.get(&(u32::from(database.oid), FIRST)) {
            Some(Berth::Running { slot, .. }) => shared::is_serving(*slot),
            _ => false,
        }
    }

    /// Drops what is known of databases that are no more.
    fn forget_gone(&mut self, databases: &[Database]) {
        self.berths.retain(|(oid, duty), berth| {
            let stays = matches!(berth, Berth::Running { .. })
                || databases.iter().any(|db| u32::from(db.oid) == *oid);
            if !stays && *duty == FIRST {
                stats::forget(pg_sys::Oid::from(*oid));
            }
            stays
        });
    }

    /// Looks which workers have ended, and why.
    fn note_departures(&mut self, now: Instant) {
        for berth in self.berths.values_mut() {
            let Berth::Running {
                worker,
                slot,
                since,
                backoff,
            } = berth
            else {
                continue;
            };
            if !matches!(worker.pid(), Err(BackgroundWorkerStatus::Stopped)) {
                continue;
            }
            if now.duration_since(*since) > HEALTHY_AFTER {
                backoff.reset();
            }
            *berth = match shared::release_slot(*slot) {
                Departure::NothingToDo => Berth::Idle,
                Departure::Asked => Berth::wanted(now),
                Departure::Unexplained => {
                    let mut backoff = Backoff { next: backoff.next };
                    Berth::Wanted {
                        not_before: now + backoff.pause(),
                        backoff,
                    }
                }
            };
        }
    }
}

impl Berth {
    fn wanted(now: Instant) -> Berth {
        Berth::Wanted {
            backoff: Backoff::new(),
            not_before: now,
        }
    }

    /// Starts the worker if it is wanted and due; otherwise says in how long it will be.
    fn start(&mut self, database: &Database, duty: Duty, now: Instant) -> Option<Duration> {
        let Berth::Wanted {
            backoff,
            not_before,
        } = self
        else {
            return None;
        };
        if *not_before > now {
            return Some(*not_before - now);
        }
        match start_worker(database, duty) {
            Ok((worker, slot)) => {
                *self = Berth::Running {
                    worker,
                    slot,
                    since: now,
                    backoff: Backoff { next: backoff.next },
                };
                None
            }
            Err(reason) => {
                let pause = backoff.pause();
                warning!(
                    "pg_recur launcher: could not start a worker database={:?} duty={} reason={reason:?} retry_in={pause:?}",
                    database.name,
                    duty.name()
                );
                *not_before = now + pause;
                Some(pause)
            }
        }
    }
}

fn start_worker(
    database: &Database,
    duty: Duty,
) -> Result<(DynamicBackgroundWorker, usize), &'static str> {
    let slot =
        shared::reserve_slot(database.oid, duty).ok_or("more databases than pg_recur can serve")?;
    let kind = format!("pg_recur {}", duty.name());
    let worker = BackgroundWorkerBuilder::new(&format!("{kind} {}", database.name))
        .set_type(&kind)
        .set_library("pg_recur")
        .set_function("pg_recur_worker_main")
        .enable_spi_access()
        .set_argument(Some(pg_sys::Datum::from(slot)))
        .set_notify_pid(unsafe { pg_sys::MyProcPid })
        .set_restart_time(None)
        .load_dynamic();
    match worker {
        Ok(worker) => Ok((worker, slot)),
        Err(_) => {
            shared::release_slot(slot);
            Err("no free background worker: raise max_worker_processes")
        }
    }
}
