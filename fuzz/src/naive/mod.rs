//! Slow and simple models of what the crates compute.
//!
//! Each is written in the plainest way: it walks through days, minutes and candidates. chrono
//! and chrono-tz help; what is said about occurrences in decisions comes from the engine, which has models of its own.

pub mod at;
pub mod clock;
pub mod cron;
pub mod decide;
pub mod interval;
pub mod journey;
pub mod queue;
pub mod rrule;
pub mod rule;
pub mod span;
