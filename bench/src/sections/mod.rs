//! One file for each section of the results.

pub mod cache;
pub mod consume;
pub mod databases;
pub mod engine;
mod enqueue;
pub mod growth;
pub mod herds;
pub mod history;
pub mod idle;
pub mod lateness;
pub mod snapshot;
pub mod sql;
pub mod throughput;
