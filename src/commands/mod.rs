//! What the database itself runs: SQL actions and handlers. What may be written, by whom, and whose runs. How it is run
//! stands in `execution`.

pub mod armed;
mod check;
mod functions;
pub mod handlers;
mod pg_cron;
mod rights;

pub use check::{check_override, check_payload};
pub use functions::payload;
pub use rights::{check_author, prepare};
