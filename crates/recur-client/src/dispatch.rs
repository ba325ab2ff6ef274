//! What claims and reports return.

use crate::Error;
use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio_postgres::Row;
use uuid::Uuid;

/// A claimed dispatch: one row of `recur.dispatches`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Dispatch {
    /// The same at every attempt, and so an idempotency key.
    pub id: Uuid,
    /// The action; `None` for a one-time dispatch.
    pub action_id: Option<Uuid>,
    /// The occurrence that is due.
    pub scheduled_at: DateTime<Utc>,
    /// The action's namespace.
    pub namespace: String,
    /// The action's tenant.
    pub tenant: String,
    /// What the action is about, if its author has said so.
    pub subject: Option<String>,
    /// Which kind of consumer runs the dispatch.
    pub provider: String,
    /// Which handler runs the dispatch.
    pub action_type: String,
    /// The arguments: a JSON object, or for an enqueued dispatch any JSON value.
    pub payload: Value,
    /// The action's metadata, with `_recurring_id` for the dispatches of a schedule.
    pub metadata: Value,
    /// The context that the action's last run has left, as it was at the claim.
    pub context: Option<Value>,
    /// The number of this claim, which every report names.
    pub attempt: i32,
    /// How many attempts there are at most.
    pub max_attempts: i32,
    /// Whether the run was asked to stop before it was claimed.
    pub cancel_requested: bool,
}

impl Dispatch {
    pub(crate) fn from_row(row: &Row) -> Result<Dispatch, Error> {
        Ok(Dispatch {
            id: row.try_get("id")?,
            action_id: row.try_get("action_id")?,
            scheduled_at: row.try_get("scheduled_at")?,
            namespace: row.try_get("namespace")?,
            tenant: row.try_get("tenant")?,
            subject: row.try_get("subject")?,
            provider: row.try_get("provider")?,
            action_type: row.try_get("action_type")?,
            payload: row.try_get("payload")?,
            metadata: row.try_get("metadata")?,
            context: row.try_get("context")?,
            attempt: row.try_get("attempt")?,
            max_attempts: row.try_get("max_attempts")?,
            cancel_requested: row.try_get("cancel_requested")?,
        })
    }
}

/// The state of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// Waits to be claimed.
    Pending,
    /// Claimed.
    Running,
    /// Done.
    Completed,
    /// Out of attempts, or failed permanently.
    Failed,
    /// Not wanted any more.
    Cancelled,
}

impl std::str::FromStr for Status {
    type Err = Error;

    /// ```
    /// use recur_client::Status;
    ///
    /// assert_eq!("completed".parse::<Status>()?, Status::Completed);
    /// assert!("done".parse::<Status>().is_err());
    /// # Ok::<(), recur_client::Error>(())
    /// ```
    fn from_str(text: &str) -> Result<Status, Error> {
        match text {
            "pending" => Ok(Status::Pending),
            "running" => Ok(Status::Running),
            "completed" => Ok(Status::Completed),
            "failed" => Ok(Status::Failed),
            "cancelled" => Ok(Status::Cancelled),
            _ => Err(Error::UnexpectedAnswer(format!(
                "unknown dispatch status {text:?}"
            ))),
        }
    }
}

/// A dispatch after a report.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The dispatch's state; [`Status::Pending`] after a failure that is tried again.
    pub status: Status,
    /// The attempt that was reported.
    pub attempt: i32,
    /// When a pending dispatch can be claimed.
    pub available_at: Option<DateTime<Utc>>,
    /// Whether the run has been asked to stop.
    pub cancel_requested: bool,
}

impl Report {
    pub(crate) fn from_row(row: &Row) -> Result<Report, Error> {
        Ok(Report {
            status: row.try_get::<_, &str>("status")?.parse()?,
            attempt: row.try_get("attempt")?,
            available_at: row.try_get("available_at")?,
            cancel_requested: row
                .try_get::<_, Option<bool>>("cancel_requested")?
                .unwrap_or(false),
        })
    }
}
