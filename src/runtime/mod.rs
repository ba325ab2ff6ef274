//! How sessions and workers meet: shared memory, wake-ups at commit, hooks, statistics, settings, and the role that
//! works on the tables.
//!
//! Nothing here knows a feature: slices hand over plain values.

pub mod allowance;
pub mod cached_table;
pub mod clock;
pub mod engine;
pub mod environment;
pub mod histogram;
pub mod home;
pub mod hooks;
mod install;
pub mod installation;
pub mod notify_queue;
mod setting_rows;
pub mod settings;
pub mod shared;
pub mod stats;
mod table_locks;
pub mod wakeup;
