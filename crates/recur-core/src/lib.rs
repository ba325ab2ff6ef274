//! The pure part of pg_recur: what a definition is, what is decided about it, and how ids and messages are encoded.
//!
//! Nothing here knows a server, reads a clock or does I/O: `now` is always an argument. The extension reads rows,
//! asks this crate what to do, and writes the answer.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod action;
pub mod alarm;
pub mod backfill;
pub mod backoff;
mod choice;
pub mod command;
pub mod cursor;
pub mod decide;
pub mod definition;
pub mod dispatch_id;
pub mod event;
mod invalid;
pub mod journey;
pub mod notice;
pub mod notify;
pub mod pace;
pub mod pattern;
pub mod policy;
pub mod report;
pub mod service;
pub mod span;

pub use invalid::InvalidValue;
