//! A fuzzer for the stable compiler.
//!
//! Coverage of the code under test is not known, so the harness goes by what it can see: generators that know the
//! notations and prefer their edges, mutation of a corpus, and signatures. A signature says what kind of answer an
//! input got, such as which error or which shape of canonical text. An input with a new signature joins the corpus
//! of the run.
//!
//! A [`Target`](target::Target) is a generator and a check. The check compares the code under test with a slow and
//! simple model in [`naive`], or with properties that must hold, and panics where they differ. Everything depends on
//! the seed alone: a run is split into shards, whose number does not depend on the machine.

#![forbid(unsafe_code)]

pub mod corpus;
pub mod input;
pub mod minimize;
pub mod mutate;
pub mod naive;
pub mod random;
pub mod run;
pub mod target;
pub mod targets;

/// The client's reader of connection strings, which is private to its crate.
#[path = "../../crates/recur-client/src/options.rs"]
mod options;

use recur_client::Error;
