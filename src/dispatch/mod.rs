//! Turning due actions into dispatches.
//!
//! `decide` is pure: a row and `now` in, a decision out. `definition` parses what is stored. `store`, `herd` and `later` are
//! the only places with SQL. `tick` joins them into one batch, `announce` tells the listeners, and `told`, which is pure as well,
//! says what of a herd is left to be told.

pub mod announce;
pub mod decide;
mod definition;
pub mod herd;
pub mod id;
pub mod later;
pub mod query;
mod repeated;
pub mod store;
pub mod tick;
mod told;
