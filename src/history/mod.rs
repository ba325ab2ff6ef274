//! What happened: events, lines of the log, and the ring of partitions that history is kept in.

pub mod contexts;
pub mod events;
pub mod lines;
pub mod partition;
