//! The launcher and its workers: crashes, failover, clocks, settings.

mod clock;
mod crashes;
mod failover;
mod hooks;
mod lifecycle;
mod logging;
mod maintenance;
mod slots;
