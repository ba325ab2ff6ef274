//! A claimed dispatch.

use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio_postgres::Row;
use uuid::Uuid;

/// What is to be done: one row of `recur.dispatches`, claimed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Dispatch {
    /// The same at every attempt: an idempotency key.
    pub id: Uuid,
    /// The action; none if it was enqueued by itself.
    pub action_id: Option<Uuid>,
    /// The occurrence.
    pub scheduled_at: DateTime<Utc>,
    pub namespace: String,
    pub tenant: String,
    pub subject: Option<String>,
    pub provider: String,
    pub action_type: String,
    /// The arguments.
    pub payload: Value,
    pub metadata: Value,
    /// What earlier runs of the action have left.
    pub context: Option<Value>,
    /// Counts the claims; a report names it.
    pub attempt: i32,
    pub max_attempts: i32,
    /// Does somebody want the run to stop?
    pub cancel_requested: bool,
}

/// In the order in which [`Dispatch::from_row`] reads them.
pub(crate) const COLUMNS: &str = "id, action_id, scheduled_at, namespace, tenant, subject, provider, action_type, payload, \
     metadata, context, attempt, max_attempts, cancel_requested";

impl Dispatch {
    pub(crate) fn from_row(row: &Row) -> Result<Dispatch, tokio_postgres::Error> {
        Ok(Dispatch {
            id: row.try_get(0)?,
            action_id: row.try_get(1)?,
            scheduled_at: row.try_get(2)?,
            namespace: row.try_get(3)?,
            tenant: row.try_get(4)?,
            subject: row.try_get(5)?,
            provider: row.try_get(6)?,
            action_type: row.try_get(7)?,
            payload: row.try_get(8)?,
            metadata: row.try_get(9)?,
            context: row.try_get(10)?,
            attempt: row.try_get(11)?,
            max_attempts: row.try_get(12)?,
            cancel_requested: row.try_get(13)?,
        })
    }
}
