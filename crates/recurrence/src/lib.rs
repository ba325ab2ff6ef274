//! When does it happen again?
//!
//! The recurrence engine of pg_recur. It knows nothing of PostgreSQL, does no I/O and never asks
//! what time it is: every question carries its own instant.
//!
//! ```
//! use std::sync::Arc;
//! use recurrence::{Bounds, OnFold, OnGap, Recurrence, Schedule, Zone};
//!
//! let recurrence = Recurrence::new(
//!     Arc::new(Schedule::parse("30 2 * * *")?),
//!     Zone::parse("America/Chicago")?,
//!     Bounds::default(),
//!     OnGap::RollForward,
//!     OnFold::First,
//! )?;
//! let next = recurrence.next_after("2027-03-13T12:00:00Z".parse()?).unwrap();
//! // 02:30 does not exist on that day.
//! assert_eq!(next.local.to_string(), "2027-03-14 03:00:00");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - A [`Schedule`] is what somebody wrote: parsed, validated, and printed in one canonical form.
//! - A [`Recurrence`] is a schedule in a [`Zone`] and within [`Bounds`]: it finds the next
//!   occurrence, the previous one, and how many there are between two instants.
//! - Inside, `search` finds wall-clock readings (or steps of elapsed time) on integers and bit
//!   sets, and turns the one it found into an instant; `zone` knows when clocks are set; `plan`
//!   says which search answers for which schedule.

#![forbid(unsafe_code)]

pub mod at;
mod cache;
pub mod civil;
pub mod cron;
mod describe;
mod error;
pub mod interval;
mod named;
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
