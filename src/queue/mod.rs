//! The queue of dispatches: enqueue, claim, report.
//!
//! Consumers write no table. Each function here looks up what its caller sees, then works as the engine.

pub mod announce;
pub mod claim;
pub mod dedup;
pub mod enqueue;
pub mod finish;
pub mod limits;
mod lock_groups;
pub mod outcomes;
pub mod overlap;
pub mod report;
mod report_many;
pub mod requeue;
pub mod runs;
mod shown;
