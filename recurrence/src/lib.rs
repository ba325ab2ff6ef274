//! When does it happen again?
//!
//! The recurrence engine of pg_recur. It knows nothing of PostgreSQL, does no I/O and never asks
//! what time it is: every question carries its own instant.

#![forbid(unsafe_code)]

pub mod at;
mod cache;
pub mod civil;
pub mod cron;
mod describe;
mod error;
pub mod interval;
mod occurrence;
mod pin;
mod plan;
mod policy;
mod recurrence;
pub mod rrule;
pub mod rule;
mod schedule;
mod search;
mod spacing;
mod text;
mod zone;

pub use cache::ScheduleCache;
pub use error::{RecurrenceError, ScheduleError, ZoneError};
pub use occurrence::{Occurrence, Shift};
pub use policy::{OnFold, OnGap, PolicyError};
pub use recurrence::{Bounds, Occurrences, Recurrence};
pub use schedule::{Kind, Schedule};
pub use zone::{Zone, tzdata_version};
