//! Actions: created, changed, paused, resumed and deleted.

mod bounds;
mod bulk;
mod concurrency;
mod context;
mod create;
mod create_many;
mod existing;
mod first_run;
mod limits;
mod quotas;
mod refusals;
mod states;
mod update;
