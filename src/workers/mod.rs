//! The background workers: a launcher for the server, dispatchers in each database that has the extension, and
//! executors where there is SQL to run.

mod announcer;
mod backoff;
mod context;
mod databases;
mod dispatcher;
mod executor;
mod herds;
mod launcher;
mod lease_expiry;
mod maintenance;
mod registry;
mod service;
mod staffing;
mod summary;
mod task;
mod upkeep;
mod worker;

use crate::pg::signals;
use crate::runtime::shared::Reservation;
use crate::runtime::shared::executors::ExecutorReservation;
use pgrx::bgworkers::BackgroundWorkerBuilder;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::time::Duration;

/// Only while the library is being preloaded. The launcher starts when recovery has finished, so that a promoted
/// standby takes over by itself. The server restarts a launcher a second after its end.
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
    signals::handle();
    launcher::main()
}

#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pg_recur_worker_main(argument: pg_sys::Datum) {
    signals::handle();
    worker::main(Reservation::from_argument(argument.value()))
}

#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pg_recur_executor_main(argument: pg_sys::Datum) {
    signals::handle();
    executor::main(ExecutorReservation::from_argument(argument.value()))
}
