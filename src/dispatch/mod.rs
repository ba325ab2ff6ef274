//! Turning due actions into dispatches.
//!
//! `decide` is pure: rows and `now` in, decisions out. `store` is the only place with SQL. `tick` joins them.

pub mod decide;
pub mod id;
pub mod store;
pub mod tick;
