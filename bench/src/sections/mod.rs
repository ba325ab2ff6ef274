//! One file for each section of the results.

pub mod consume;
pub mod throughput;
