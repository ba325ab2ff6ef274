//! Messages to listeners about dispatches that can be claimed: the one encoder of NOTIFY payloads.
//!
//! One message per dispatch, or, when there are more than `recur.notify_each_max`, one per channel and provider:
//!
//! ```json
//! {"id":"…","action_id":"…","scheduled_at":"2030-01-01T12:00:00Z",
//!  "provider":"…","action_type":"…"}
//! {"provider":"…","count":250}
//! ```
//!
//! A message has ids and what routing needs; `recur.notify_detail` says how much. It never has a payload, which could
//! be secret or too long: every role that may connect can listen.

mod encode;
mod group;

pub use encode::{encode, encode_counts};
pub use group::{Group, unannounced};

use crate::choice::choice;
use chrono::{DateTime, Utc};
use uuid::Uuid;

/// One dispatch, as far as a message tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement<'a> {
    /// The dispatch.
    pub id: Uuid,
    /// Its action; none for one-time dispatches.
    pub action_id: Option<Uuid>,
    /// Its occurrence.
    pub scheduled_at: DateTime<Utc>,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its tenant.
    pub tenant: &'a str,
    /// Its provider.
    pub provider: &'a str,
    /// Its action type.
    pub action_type: &'a str,
    /// The channel of its action; none for the default channel.
    pub channel: Option<&'a str>,
}

choice! {
    /// How much a message tells of a dispatch.
    pub enum Detail in "recur.notify_detail" {
        /// Ids, instant and provider.
        Ids = "ids",
        /// The same and the action type: what consumers filter by.
        Routing = "routing",
        /// The same, namespace and tenant.
        Full = "full",
    }
}

/// A message for a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification<'a> {
    /// The channel.
    pub channel: &'a str,
    /// The message: a JSON object of fewer than 8000 bytes.
    pub payload: String,
}
