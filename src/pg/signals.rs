//! Signals of a background worker.

use super::compat::{server_signal, set_signal_handler};
use pgrx::pg_sys;
use std::ffi::c_int;

/// Installs the server's own handlers: SIGTERM ends the worker at its next interrupt check, also in the middle of a
/// query or a lock wait; SIGHUP sets a flag and the latch.
pub fn handle() {
    // SAFETY: the server's handlers are async-signal-safe. The worker has just started: its signals are still blocked.
    unsafe {
        set_signal_handler(pg_sys::SIGTERM as c_int, server_signal::die);
        set_signal_handler(
            pg_sys::SIGHUP as c_int,
            server_signal::SignalHandlerForConfigReload,
        );
        pg_sys::BackgroundWorkerUnblockSignals();
    }
}

/// Reads the configuration again if SIGHUP asked for it. True if it did.
pub fn reload_settings() -> bool {
    // SAFETY: the flag is written by a signal handler of this process, hence volatile. Outside of a transaction, the
    // configuration may be read.
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
