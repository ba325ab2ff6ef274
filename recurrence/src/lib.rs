//! When does it happen again?
//!
//! The recurrence engine of pg_recur. It knows nothing of PostgreSQL, does no I/O and never asks
//! what time it is: every question carries its own instant.

#![forbid(unsafe_code)]

pub mod civil;
pub mod rrule;
