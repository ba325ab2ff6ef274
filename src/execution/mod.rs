//! Running what the database itself runs: claim a dispatch, run it as its owner, complete or fail it. An executor calls
//! this; `workers` starts executors and looks after what they leave behind.
//!
//! If the transaction that a run began in is still open when it has ended, the dispatch is completed in it: its effects
//! and its completion happen together, or not at all. Otherwise, after a VACUUM or a procedure that commits, the
//! dispatch is completed in a transaction of its own: a crash in between repeats the run.

pub mod claim;
mod group;
mod outcome;
pub mod reconcile;
mod report;
pub mod run;
mod shown;
