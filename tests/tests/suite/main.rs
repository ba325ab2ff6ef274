//! Drives real servers from outside, one module for each slice of the code.

mod access;
mod actions;
mod attacks;
mod clients;
mod dispatch;
mod history;
mod inspect;
mod install;
mod model;
mod queue;
mod recovery;
mod workers;
