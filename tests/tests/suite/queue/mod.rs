//! Claims, reports, one-time dispatches and lock groups.

mod agents;
mod batches;
mod claim;
mod cursors;
mod dedup;
mod effects;
mod enqueue;
mod isolation;
mod lock_groups;
mod numbers;
mod patterns;
mod plans;
mod postponed;
mod prepared;
mod reports;
mod spans;
mod strangers;
