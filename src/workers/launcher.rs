//! The launcher: keeps one dispatcher running in every database that has the extension.
//!
//! It is connected to no database, so it can't see in which ones the extension is. It starts a worker in
//! each; a worker that finds nothing to do says so and leaves, and its database is left alone until
//! CREATE EXTENSION there asks for another look.

use super::databases::{self, Database};
use super::{Backoff, reload_settings};
use crate::guc;
use crate::pg::{latch, transaction};
use crate::shared::{self, Departure};
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

/// What is known of each database.
#[derive(Default)]
struct Fleet {
    berths: BTreeMap<u32, Berth>,
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
        self.berths.retain(|oid, berth| {
            matches!(berth, Berth::Running { .. })
                || databases.iter().any(|db| u32::from(db.oid) == *oid)
        });
        let mut sleep = guc::check_interval();
        for database in &databases {
            let oid = u32::from(database.oid);
            let asked = requests.everywhere || requests.databases.contains(&database.oid);
            let berth = self.berths.entry(oid).or_insert_with(|| Berth::wanted(now));
            if asked && matches!(berth, Berth::Idle) {
                *berth = Berth::wanted(now);
            }
            if guc::enabled()
                && guc::serves_database(&database.name)
                && !shared::is_vacated(database.oid)
                && let Some(wait) = berth.start(database, now)
            {
                sleep = sleep.min(wait);
            }
        }
        sleep
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
    fn start(&mut self, database: &Database, now: Instant) -> Option<Duration> {
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
        match start_dispatcher(database) {
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
                    "pg_recur launcher: could not start a dispatcher database={:?} reason={reason:?} retry_in={pause:?}",
                    database.name
                );
                *not_before = now + pause;
                Some(pause)
            }
        }
    }
}

fn start_dispatcher(database: &Database) -> Result<(DynamicBackgroundWorker, usize), &'static str> {
    let slot =
        shared::reserve_slot(database.oid).ok_or("more databases than pg_recur can serve")?;
    let worker = BackgroundWorkerBuilder::new(&format!("pg_recur dispatcher {}", database.name))
        .set_type("pg_recur dispatcher")
        .set_library("pg_recur")
        .set_function("pg_recur_dispatcher_main")
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
