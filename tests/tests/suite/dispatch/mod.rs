//! From a due action to its dispatches and their announcement.

mod batches;
mod concurrency;
mod duplicates;
mod firing;
mod horizons;
mod limits;
mod lock_waits;
mod low_water;
mod manual;
mod misfires;
mod notifications;
mod notify_queue;
mod open_transactions;
mod overlap;
mod staging;
mod test_clock;
