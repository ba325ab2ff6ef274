//! Dispatches that become available later than they are written: what is asked of them in SQL.

use super::query::{instant_at, queries, required, uuid_at};
pub use super::told::AnnouncedGroup;
use crate::pg::peek::{self, From};
use crate::pg::{installation, time};
use chrono::{DateTime, Utc};
use pgrx::spi::SpiResult;
use uuid::Uuid;

queries! {
    NEWLY_AVAILABLE = "newly_available.sql" (TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID);
    COUNT_NEWLY_AVAILABLE = "count_newly_available.sql" (TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID);
}

type Instant = DateTime<Utc>;

/// When a dispatch becomes available that is not yet.
pub fn next_available(now: Instant) -> Option<Instant> {
    let later = installation::find()?.live_dispatches_later;
    peek::first(later, From::After(now))
}

/// A dispatch, as far as a notification tells of it.
pub struct Announced {
    pub id: Uuid,
    pub action: Option<Uuid>,
    pub scheduled_at: Instant,
    pub namespace: String,
    pub tenant: String,
    pub provider: String,
    pub action_type: String,
    pub channel: Option<String>,
}

/// A dispatch with whether it is the first attempt at an occurrence, and since when it is available.
pub type NewlyAvailable = (Announced, bool, Instant);

/// Those whose occurrence is no point in time, such as `infinity`, can't be told of: of these there is only the id.
pub fn newly_available(
    after: Instant,
    until: Instant,
    limit: i64,
) -> SpiResult<Vec<Result<NewlyAvailable, Uuid>>> {
    let arguments = [
        time::timestamptz(after).into(),
        time::timestamptz(until).into(),
        limit.into(),
    ];
    NEWLY_AVAILABLE.with(|query| {
        query.rows(&arguments, |row| {
            let id = uuid_at(row, 1)?;
            let Some(scheduled_at) = instant_at(row, 3)? else {
                return Ok(Err(id));
            };
            let action: Option<pgrx::datum::Uuid> = row.get(2)?;
            let announced = Announced {
                id,
                action: action.map(|id| Uuid::from_bytes(*id.as_bytes())),
                scheduled_at,
                namespace: required(row.get(4)?)?,
                tenant: required(row.get(5)?)?,
                provider: required(row.get(6)?)?,
                action_type: required(row.get(7)?)?,
                channel: row.get(8)?,
            };
            let is_scheduled = required(row.get(9)?)?;
            let since = required(instant_at(row, 10)?)?;
            Ok(Ok((announced, is_scheduled, since)))
        })
    })
}

/// The first `limit` of them, or all.
pub fn count_newly_available(
    after: Instant,
    until: Instant,
    limit: Option<i64>,
) -> SpiResult<Vec<AnnouncedGroup>> {
    let arguments = [
        time::timestamptz(after).into(),
        time::timestamptz(until).into(),
        limit.into(),
    ];
    COUNT_NEWLY_AVAILABLE.with(|query| {
        query.rows(&arguments, |row| {
            Ok(AnnouncedGroup {
                channel: row.get(1)?,
                provider: required(row.get(2)?)?,
                dispatches: required(row.get(3)?)?,
                scheduled: required(row.get(4)?)?,
                since: instant_at(row, 5)?,
            })
        })
    })
}
