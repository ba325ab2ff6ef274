//! Instants at which very many timers are due.

use crate::pg::query::queries;
use crate::pg::time;
use chrono::{DateTime, Utc};

queries! {
    COUNT_DUE_AT = "dispatch/queries/count_due_at.sql" (TIMESTAMPTZOID, INT8OID);
    NTH_DUE = "dispatch/queries/nth_due.sql" (TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID);
}

type Instant = DateTime<Utc>;

/// A herd behind this many herds' worth of other timers is found when it is nearer.
const MAX_HOPS: usize = 20;

/// The first instant of a stretch of time at which at least `size` timers are due, beside those that are known.
pub fn find(
    after: Instant,
    until: Instant,
    size: i64,
    known: &[(Instant, i64)],
) -> Option<Instant> {
    let mut from = after;
    for _ in 0..MAX_HOPS {
        let at = nth_due(from, until, size - 1)?;
        let known = known.iter().find(|(instant, _)| *instant == at);
        let size = size + known.map_or(0, |(_, count)| *count);
        if count_due_at(at, size) == size {
            return Some(at);
        }
        from = at;
    }
    None
}

fn nth_due(after: Instant, until: Instant, offset: i64) -> Option<Instant> {
    let arguments = [
        time::timestamptz(after).into(),
        time::timestamptz(until).into(),
        offset.into(),
    ];
    NTH_DUE
        .with(|query| query.row(&arguments, |row| row.instant(1)))
        .flatten()
}

/// How many timers are due at exactly this instant, counted up to `limit`.
fn count_due_at(instant: Instant, limit: i64) -> i64 {
    let arguments = [time::timestamptz(instant).into(), limit.into()];
    COUNT_DUE_AT
        .with(|query| query.row(&arguments, |row| row.required(1)))
        .unwrap_or(0)
}
