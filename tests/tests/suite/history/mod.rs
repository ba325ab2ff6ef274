//! What stays of finished dispatches.

mod kept;
mod pages;
mod purge;
