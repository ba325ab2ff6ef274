//! Schedules of pg_cron, for `recur.import_pg_cron`.

use crate::pg::error::OrRaise;
use crate::pg::time;
use chrono::{DateTime, Utc};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::iter::TableIterator;
use pgrx::{name, prelude::*};
use recurrence::{PgCron, Zone};

/// How many runs are shown.
const SHOWN: usize = 3;

/// A schedule that can be imported, or why it can't.
struct Reading {
    schedule: String,
    seconds: Option<i32>,
    runs: Vec<TimestampWithTimeZone>,
    remark: Option<String>,
}

/// `recur_internal.read_pg_cron(schedule, timezone, "from")`.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn read_pg_cron(
    schedule: Option<&str>,
    timezone: Option<&str>,
    from: Option<TimestampWithTimeZone>,
) -> TableIterator<
    'static,
    (
        name!(stored, Option<String>),
        name!(seconds, Option<i32>),
        name!(runs, Option<Vec<TimestampWithTimeZone>>),
        name!(remark, Option<String>),
        name!(problem, Option<String>),
    ),
> {
    let (Some(schedule), Some(timezone), Some(from)) = (schedule, timezone, from) else {
        return TableIterator::new(Vec::new());
    };
    let from = time::instant("from", from).or_raise();
    TableIterator::once(match read(schedule, timezone, from) {
        Ok(reading) => (
            Some(reading.schedule),
            reading.seconds,
            Some(reading.runs),
            reading.remark,
            None,
        ),
        Err(problem) => (None, None, None, None, Some(problem)),
    })
}

fn read(schedule: &str, timezone: &str, from: DateTime<Utc>) -> Result<Reading, String> {
    let zone = Zone::parse(timezone).map_err(|error| with_hint(&error, Some(&error.hint())))?;
    let read = PgCron::parse(schedule).map_err(|error| with_hint(&error, error.hint()))?;
    let stored = read
        .to_schedule()
        .map_err(|error| with_hint(&error, error.hint()))?;
    let runs = read.runs_after(from, zone, SHOWN);
    Ok(Reading {
        schedule: stored.to_string(),
        seconds: read.seconds().map(i32::from),
        runs: runs.into_iter().map(time::timestamptz).collect(),
        remark: read.remark(),
    })
}

fn with_hint(error: &dyn std::error::Error, hint: Option<&str>) -> String {
    match hint {
        Some(hint) => format!("{error}. {hint}"),
        None => error.to_string(),
    }
}
