//! From due to dispatched: lock the due timers, decide, write, announce.
//!
//! The decisions themselves are in the crate recur-core. `store` has the queries, `batch` is the work of one
//! transaction, `herd` finds instants at which very many timers are due, `manual` makes dispatches that no schedule
//! asked for, `tick` is `recur.tick`.

pub mod batch;
pub mod herd;
mod manual;
pub mod store;
mod tick;
