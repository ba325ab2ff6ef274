//! Finding instants at which very many timers are due.

use super::query::{instant_at, queries, required};
use crate::pg::time;
use chrono::{DateTime, Utc};
use pgrx::spi::SpiResult;

queries! {
    COUNT_DUE_AT = "count_due_at.sql" (TIMESTAMPTZOID, INT8OID);
    NTH_DUE = "nth_due.sql" (TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID);
}

type Instant = DateTime<Utc>;

/// The first instant of a stretch of time at which at least so many timers are due, beside those that are known.
pub fn find(
    after: Instant,
    until: Instant,
    size: i64,
    known: &[(Instant, i64)],
) -> SpiResult<Option<Instant>> {
    /// Beyond so many herds' worth of others it is not looked for: it is found when it is nearer.
    const HOPS: usize = 20;
    let mut from = after;
    for _ in 0..HOPS {
        let Some(at) = nth_due(from, until, size - 1)? else {
            return Ok(None);
        };
        let known = known.iter().find(|(instant, _)| *instant == at);
        let size = size + known.map_or(0, |(_, count)| *count);
        if count_due_at(at, size)? == size {
            return Ok(Some(at));
        }
        from = at;
    }
    Ok(None)
}

fn nth_due(after: Instant, until: Instant, offset: i64) -> SpiResult<Option<Instant>> {
    NTH_DUE.with(|query| {
        let arguments = [
            time::timestamptz(after).into(),
            time::timestamptz(until).into(),
            offset.into(),
        ];
        let rows = query.rows(&arguments, |row| instant_at(row, 1))?;
        Ok(rows.into_iter().flatten().next())
    })
}

/// How many timers are due at exactly this instant, counting no further than `limit`.
fn count_due_at(instant: Instant, limit: i64) -> SpiResult<i64> {
    COUNT_DUE_AT.with(|query| {
        let arguments = [time::timestamptz(instant).into(), limit.into()];
        let rows = query.rows(&arguments, |row| required(row.get(1)?))?;
        Ok(rows.into_iter().next().unwrap_or(0))
    })
}
