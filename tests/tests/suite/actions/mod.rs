//! Actions: created, changed, paused, resumed and deleted.

mod concurrency;
mod context;
mod create;
mod existing;
mod limits;
mod refusals;
mod states;
mod update;
