//! Consume [pg_recur](https://docs.rs/recur-client)'s dispatches from Rust.
//!
//! A [`Consumer`] claims dispatches, calls your handler for each, several at once, and reports what became of them. It
//! listens for notifications and asks from time to time as well, renews leases while handlers work, reconnects when the
//! server goes away, and on SIGTERM finishes or gives back what it has.
//!
//! ```no_run
//! use recur_client::{Completion, Consumer, Failure};
//! use serde_json::json;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), recur_client::Error> {
//!     Consumer::builder("host=/var/run/postgresql dbname=app")
//!         .handler("email", |job| async move {
//!             let to = job.dispatch.payload["to"].as_str().ok_or(Failure::for_good("nobody to send it to"))?;
//!             println!("mail to {to}");
//!             Ok::<_, Failure>(Completion::result(json!({ "sent": 1 })))
//!         })
//!         .concurrency(8)
//!         .run()
//!         .await
//! }
//! ```
//!
//! Work is done at least once: a consumer that dies after its work and before its report leaves a dispatch that another
//! one does again. [`Dispatch::id`] is the same every time, and makes a good idempotency key.
//!
//! Those who want no loop use [`Session`], the functions of pg_recur with types.

mod consumer;
mod dispatch;
mod error;
mod handler;
mod link;
mod session;
mod work;

pub use consumer::{Builder, Consumer};
pub use dispatch::Dispatch;
pub use error::Error;
pub use handler::{Completion, Failure, Job};
pub use session::{Claim, Session};
