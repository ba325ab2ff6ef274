//! When does it happen again? Cron expressions, intervals, structured rules and RFC 5545 rules in
//! any IANA time zone.
//!
//! This crate is the engine of pg_recur. It knows nothing of PostgreSQL, does no I/O and reads no
//! clock: every question carries its own instant. So an answer depends on its question alone.
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
//! # From text to instants
//!
//! - A [`Schedule`] is a parsed and validated text with one canonical form. [`Schedule::admit`] reads
//!   a text that is about to be stored, [`Schedule::parse`] one that was stored before.
//! - A [`Recurrence`] is a schedule in a [`Zone`] and within [`Bounds`]. It finds the next
//!   [`Occurrence`], the previous one, and how many there are between two instants.
//! - [`OnGap`] and [`OnFold`] decide about local times that a clock change removes or repeats.
//! - A [`ScheduleCache`] keeps parsed schedules by their texts.
//!
//! # Layout
//!
//! Each notation has a module that parses it: [`cron`], [`interval`], [`rule`], [`rrule`] and [`at`].
//! `plan` chooses the search for a schedule. `search` finds wall-clock readings, or steps of elapsed
//! time, on integers and bit sets, and resolves the one it found to an instant. `zone` knows when
//! clocks are set. `describe` writes a schedule in English. `lint` finds what is
//! probably not meant. `pg_cron` reads schedules as pg_cron does.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod at;
mod cache;
pub mod civil;
pub mod cron;
mod describe;
mod error;
pub mod interval;
mod lint;
mod named;
mod nearest;
mod occurrence;
mod pg_cron;
mod pin;
mod plan;
mod policy;
mod recurrence;
pub mod rrule;
pub mod rule;
mod schedule;
mod search;
mod silence;
mod spacing;
mod text;
mod zone;

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use cache::ScheduleCache;
pub use describe::Style;
pub use error::{RecurrenceError, ScheduleError, ZoneError};
pub use lint::{Code as FindingCode, Finding, lint};
pub use nearest::nearest_name;
pub use occurrence::{Occurrence, Shift};
pub use pg_cron::PgCron;
pub use policy::{OnFold, OnGap, PolicyError};
pub use recurrence::{Bounds, Occurrences, Recurrence};
pub use schedule::{Kind, Schedule};
pub use silence::{Silence, Warning};
pub use zone::{Zone, tzdata_version};
