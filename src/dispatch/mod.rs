//! From due to dispatched: lock the due timers, decide, write, announce.
//!
//! The decisions themselves are in the crate recur-core. `batch` is the work of one transaction: `decisions` prepares
//! the input of decisions, `duplicates` finds occurrences whose key is that of a pending dispatch, `write` writes the
//! outcome, `errors` records what failed, and `store` has the queries. `herd` finds instants at which very many timers
//! are due, `manual` makes dispatches that no schedule asked for, `tick` is `recur.tick`.

pub mod batch;
mod decisions;
pub mod duplicates;
mod errors;
pub mod herd;
mod manual;
pub mod store;
mod tick;
mod write;
