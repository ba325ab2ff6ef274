//! The database: connections, and the only way in which anything uses them.

mod door;
mod failure;
mod listen;
mod pool;

pub use door::{Database, Session, Work};
pub use failure::Failure;
pub use listen::listen;
pub use tokio_postgres::types::ToSql;
