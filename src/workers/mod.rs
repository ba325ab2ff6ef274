//! The background workers: a launcher for the server, dispatchers and a maintenance worker for each database that has
//! the extension.

mod announcer;
mod databases;
mod dispatcher;
mod herds;
mod launcher;
mod maintenance;
mod summary;
mod worker;

use crate::pg::compat::{server_signal, set_signal_handler};
use crate::runtime::shared::Reservation;
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::bgworkers::BackgroundWorkerBuilder;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::c_int;
use std::time::Duration;

/// Registered at preload. It starts when recovery has finished, so that a promoted standby takes over by
/// itself, and comes back a second after whatever ended it.
pub fn register_launcher() {
    BackgroundWorkerBuilder::new("pg_recur launcher")
        .set_type("pg_recur launcher")
        .set_library("pg_recur")
        .set_function("pg_recur_launcher_main")
        .enable_spi_access()
        .set_restart_time(Some(Duration::from_secs(1)))
        .load();
}

#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pg_recur_launcher_main(_argument: pg_sys::Datum) {
    handle_signals();
    launcher::main()
}

#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pg_recur_worker_main(argument: pg_sys::Datum) {
    handle_signals();
    worker::main(Reservation::from_argument(argument.value()))
}

/// The server's own handlers: SIGTERM ends a worker at its next interrupt check, in the middle of a query
/// or a lock wait too; SIGHUP sets a flag and the latch.
fn handle_signals() {
    unsafe {
        set_signal_handler(pg_sys::SIGTERM as c_int, server_signal::die);
        set_signal_handler(
            pg_sys::SIGHUP as c_int,
            server_signal::SignalHandlerForConfigReload,
        );
        pg_sys::BackgroundWorkerUnblockSignals();
    }
}

fn after(instant: DateTime<Utc>, span: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(span)
        .ok()
        .and_then(|span| instant.checked_add_signed(span))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// Reads the configuration again if SIGHUP asked for it. True if it did.
fn reload_settings() -> bool {
    unsafe {
        let pending = &raw mut pg_sys::ConfigReloadPending;
        let asked = pending.read_volatile() != 0;
        if asked {
            pending.write_volatile(0);
            pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP);
        }
        asked
    }
}

/// Pauses that double from one failure to the next, and start over after a success.
struct Backoff {
    next: Duration,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(30);

    fn new() -> Self {
        Backoff { next: Self::FIRST }
    }

    fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(Self::LONGEST);
        pause
    }

    fn reset(&mut self) {
        self.next = Self::FIRST;
    }
}
