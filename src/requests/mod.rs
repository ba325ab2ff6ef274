//! Requests that must happen once, however often a client sends them.

mod functions;
pub mod keys;
