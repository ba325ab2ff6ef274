//! Real servers for tests: each is made from scratch, listens on a socket of its own, and is gone with the test.

pub mod actions;
pub mod books;
mod clock;
mod cluster;
pub mod consumers;
pub mod dice;
mod disk;
pub mod faults;
mod permits;
pub mod pooler;
mod programs;
pub mod queue;
pub mod receiver;
pub mod recurd;
mod server;
mod session;
pub mod timers;
mod wait;
pub mod workers;

pub use clock::Clock;
pub use cluster::Cluster;
pub use disk::{Disk, Disks};
pub use programs::succeed;
pub use server::Shutdown;
pub use session::{Session, database_error};
pub use wait::{eventually, eventually_some, overtake};
