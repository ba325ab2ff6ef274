//! What happened: events, and the ring of partitions that history is kept in.

pub mod contexts;
pub mod events;
pub mod partition;
