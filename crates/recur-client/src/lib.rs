#![doc = include_str!("../README.md")]
#![deny(missing_docs)]

mod attempt;
mod connector;
mod consumer;
mod dispatch;
mod error;
mod events;
mod handler;
mod link;
mod options;
mod session;
mod tls;

pub use connector::{Connector, has_password};
pub use consumer::{Builder, Consumer};
pub use dispatch::{Dispatch, Report, Status};
pub use error::Error;
pub use handler::{Completion, Failure, Job};
pub use rustls;
pub use session::{Claim, Session};
