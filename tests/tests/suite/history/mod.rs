//! What stays of finished dispatches.

mod forget;
mod kept;
mod pages;
mod purge;
