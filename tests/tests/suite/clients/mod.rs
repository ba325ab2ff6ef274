//! Programs that consume, and the documentation that people copy from.

mod documents;
mod examples;
mod rust_client;
