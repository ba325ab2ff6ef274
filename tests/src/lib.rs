//! Real servers for tests: each is made from scratch, listens on a socket of its own, and is gone with the test.

pub mod books;
mod clock;
mod cluster;
pub mod consumers;
pub mod dice;
pub mod pooler;
pub mod queue;
mod session;
mod wait;

pub use clock::Clock;
pub use cluster::{Cluster, Shutdown};
pub use session::{Session, database_error};
pub use wait::{eventually, eventually_some};
