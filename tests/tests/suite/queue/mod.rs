mod batches;
mod claim;
mod cursors;
mod enqueue;
mod lock_groups;
mod plans;
mod reports;
mod spans;
