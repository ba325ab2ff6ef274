//! Webhooks: endpoints, which of them get a dispatch, and when one is left alone.
//!
//! A dispatch of provider [`PROVIDER`] is routed to the endpoints whose patterns match its action type, and delivered
//! by a program of level `deliverer`, which reports how it went.

mod base64;
mod endpoint;
mod health;
mod operator;
mod rate;
mod retry;
mod route;
mod settings;
mod share;

pub use endpoint::{
    DEFAULT_CONCURRENCY, DEFAULT_TIMEOUT, check_concurrency, check_headers, check_name,
    check_patterns, check_rate, check_secret, check_timeout, check_url, secret,
};
pub use health::{Delivery, Health, Reason, Standing, Turn};
pub use operator::Operator;
pub use rate::Bucket;
pub use retry::{BACKOFF_OF_ACTIONS, MAX_ATTEMPTS, after_failure};
pub use route::{Candidate, Routes};
pub use settings::Settings;
pub use share::shares;

/// The provider of what is delivered by HTTP. A claim that names no provider leaves its dispatches out.
pub const PROVIDER: &str = "webhook";

/// The action type of a webhook that is given none.
pub const ACTION_TYPE: &str = "webhook";

/// What the names of an operator's endpoints begin with, unlike those of owners.
pub const OPERATOR_PREFIX: &str = "operator:";
