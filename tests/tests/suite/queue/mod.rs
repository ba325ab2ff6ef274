mod batches;
mod claim;
mod cursors;
mod lock_groups;
mod reports;
mod spans;
