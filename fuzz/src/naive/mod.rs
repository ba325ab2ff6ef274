//! Slow and simple models of what the crates compute.
//!
//! Each is written from the documentation alone, in the plainest way: it walks through days, minutes and candidates.
//! chrono and chrono-tz are the only help.

pub mod at;
pub mod clock;
pub mod cron;
pub mod decide;
pub mod interval;
pub mod queue;
pub mod rrule;
pub mod rule;
pub mod span;
