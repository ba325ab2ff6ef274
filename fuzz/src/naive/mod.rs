//! Slow and simple models of what the crates compute.
//!
//! Each is written in the plainest way: it walks through days, minutes and candidates. It shares no code with what it
//! checks; chrono and chrono-tz are the only help.

pub mod at;
pub mod clock;
pub mod cron;
pub mod decide;
pub mod interval;
pub mod queue;
pub mod rrule;
pub mod rule;
pub mod span;
