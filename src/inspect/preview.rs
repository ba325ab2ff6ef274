//! Schedules from SQL: validate and preview. Nothing here reads or writes a table.

use crate::pg::error::{OrRaise, SqlError};
use crate::pg::jsonb::Jsonb;
use crate::pg::time;
use crate::runtime::{environment, settings};
use chrono::{DateTime, Utc};
use pgrx::datum::{Timestamp, TimestampWithTimeZone};
use pgrx::iter::TableIterator;
use pgrx::{check_for_interrupts, name, prelude::*};
use recur_core::action::{Column, Value, checked};
use recurrence::{
    Bounds, Occurrence, OnFold, OnGap, Recurrence, RecurrenceError, Schedule, ScheduleError, Zone,
};
use std::str::FromStr;
use std::sync::Arc;

/// More rows than a person reads, in a bounded time.
const MOST_PREVIEWED: i32 = 10_000;
const DEFAULT_COUNT: i32 = 10;

/// `recur.is_valid_schedule(text)`.
#[pg_extern(sql = false)]
fn is_valid_schedule(schedule: &str) -> bool {
    Schedule::parse(schedule).is_ok()
}

/// `recur_internal.canonical_schedule(text)`: the stored form; the check of domain recur.schedule.
#[pg_extern(sql = false)]
fn canonical_schedule(schedule: &str) -> String {
    let admitted = environment::parse_schedule(schedule);
    let invalid = |error: ScheduleError| invalid_schedule(schedule, &error);
    admitted.map_err(invalid).or_raise().to_string()
}

/// `recur_internal.canonical_timezone(text)`: the name in its own case; the check of domain recur.timezone.
#[pg_extern(sql = false)]
fn canonical_timezone(timezone: Option<&str>) -> &'static str {
    match timezone {
        Some(name) => parse_zone(name).or_raise().name(),
        None => parse_zone(&settings::default_timezone()).or_raise().name(),
    }
}

/// `recur.tzdata_version()`.
#[pg_extern(sql = false)]
fn tzdata_version() -> &'static str {
    recurrence::tzdata_version()
}

/// `recur.preview(…)`: the next occurrences strictly after `from`.
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)]
fn preview(
    schedule: Option<&str>,
    timezone: Option<&str>,
    from: Option<TimestampWithTimeZone>,
    count: Option<i32>,
    starts_at: Option<TimestampWithTimeZone>,
    ends_at: Option<TimestampWithTimeZone>,
    max_runs: Option<i32>,
    on_dst_gap: Option<&str>,
    on_dst_fold: Option<&str>,
) -> TableIterator<
    'static,
    (
        name!(occurrence, TimestampWithTimeZone),
        name!(local_time, Timestamp),
        name!(note, Option<String>),
    ),
> {
    let count = count.unwrap_or(DEFAULT_COUNT);
    if !(0..=MOST_PREVIEWED).contains(&count) {
        SqlError::invalid_argument("count", &count.to_string(), "must lie between 0 and 10000")
            .raise();
    }
    let question = Question {
        schedule,
        timezone,
        from,
        starts_at,
        ends_at,
        max_runs,
        on_dst_gap,
        on_dst_fold,
    };
    let Some((recurrence, from)) = question.compile().or_raise() else {
        return TableIterator::new(Vec::new());
    };
    // One more than is shown: a silence may follow the last row.
    let occurrences: Vec<Occurrence> = recurrence
        .occurrences_after(from)
        .take(count as usize + 1)
        .collect();
    let note = |occurrence: &Occurrence, next: Option<&Occurrence>| {
        let silence = next.and_then(|next| recurrence.silence_between(*occurrence, *next));
        let notes = [
            occurrence.shift.note(),
            silence.map(|silence| silence.to_string()),
        ];
        let notes: Vec<String> = notes.into_iter().flatten().collect();
        (!notes.is_empty()).then(|| notes.join("; "))
    };
    let rows: Vec<_> = occurrences
        .iter()
        .enumerate()
        .take(count as usize)
        .map(|(index, occurrence)| {
            (
                time::timestamptz(occurrence.at),
                time::timestamp(occurrence.local),
                note(occurrence, occurrences.get(index + 1)),
            )
        })
        .collect();
    TableIterator::new(rows)
}

/// `recur.next_occurrence(…)`: the first occurrence strictly after `from`, or NULL.
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)]
fn next_occurrence(
    schedule: Option<&str>,
    timezone: Option<&str>,
    from: Option<TimestampWithTimeZone>,
    starts_at: Option<TimestampWithTimeZone>,
    ends_at: Option<TimestampWithTimeZone>,
    max_runs: Option<i32>,
    on_dst_gap: Option<&str>,
    on_dst_fold: Option<&str>,
) -> Option<TimestampWithTimeZone> {
    let question = Question {
        schedule,
        timezone,
        from,
        starts_at,
        ends_at,
        max_runs,
        on_dst_gap,
        on_dst_fold,
    };
    let (recurrence, from) = question.compile().or_raise()?;
    let next = recurrence.occurrences_after(from).next()?;
    Some(time::timestamptz(next.at))
}

/// A forecast covers at most 31 days, and this is how often a schedule of one run a second occurs in them.
const MOST_FORECAST: usize = 31 * 86_400;

/// `recur_internal.occurrences_by_minute(…)`: occurrences in (from, until], counted by minute.
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)]
fn occurrences_by_minute(
    schedule: Option<&str>,
    timezone: Option<&str>,
    from: Option<TimestampWithTimeZone>,
    until: Option<TimestampWithTimeZone>,
    starts_at: Option<TimestampWithTimeZone>,
    ends_at: Option<TimestampWithTimeZone>,
    max_runs: Option<i32>,
    on_dst_gap: Option<&str>,
    on_dst_fold: Option<&str>,
) -> TableIterator<'static, (name!(minute, TimestampWithTimeZone), name!(count, i64))> {
    let until = until.ok_or_else(|| missing("until")).or_raise();
    let until = time::instant("until", until).or_raise();
    let question = Question {
        schedule,
        timezone,
        from,
        starts_at,
        ends_at,
        max_runs: None,
        on_dst_gap,
        on_dst_fold,
    };
    let Some((recurrence, from)) = question.compile().or_raise() else {
        return TableIterator::new(Vec::new());
    };
    let runs_left = max_runs.map_or(MOST_FORECAST, |runs| runs.max(0) as usize);
    let mut minutes: Vec<(i64, i64)> = Vec::new();
    let occurrences = recurrence
        .occurrences_after(from)
        .take_while(|occurrence| occurrence.at <= until)
        .take(runs_left.min(MOST_FORECAST));
    for (number, occurrence) in occurrences.enumerate() {
        if number % 1000 == 0 {
            check_for_interrupts!();
        }
        let minute = occurrence.at.timestamp().div_euclid(60);
        match minutes.last_mut() {
            Some((last, count)) if *last == minute => *count += 1,
            _ => minutes.push((minute, 1)),
        }
    }
    let rows: Vec<_> = minutes
        .into_iter()
        .filter_map(|(minute, count)| {
            let minute = DateTime::from_timestamp(minute * 60, 0)?;
            Some((time::timestamptz(minute), count))
        })
        .collect();
    TableIterator::new(rows)
}

/// Counting stops at this number of occurrences.
const MOST_COUNTED: u64 = 10_000_000;

/// `recur_internal.occurrences_around(…)`: the last occurrence at or before `until`, the first after it, and how many
/// there are in (from, until].
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)]
fn occurrences_around(
    schedule: Option<&str>,
    timezone: Option<&str>,
    from: Option<TimestampWithTimeZone>,
    until: Option<TimestampWithTimeZone>,
    starts_at: Option<TimestampWithTimeZone>,
    ends_at: Option<TimestampWithTimeZone>,
    on_dst_gap: Option<&str>,
    on_dst_fold: Option<&str>,
) -> TableIterator<
    'static,
    (
        name!(previous, Option<TimestampWithTimeZone>),
        name!(next, Option<TimestampWithTimeZone>),
        name!(count, i64),
    ),
> {
    let until = until.ok_or_else(|| missing("until")).or_raise();
    let until = time::instant("until", until).or_raise();
    let question = Question {
        schedule,
        timezone,
        from,
        starts_at,
        ends_at,
        max_runs: None,
        on_dst_gap,
        on_dst_fold,
    };
    let Some((recurrence, from)) = question.compile().or_raise() else {
        return TableIterator::once((None, None, 0));
    };
    let instant = |occurrence: Occurrence| time::timestamptz(occurrence.at);
    TableIterator::once((
        recurrence.previous_or_at(until).map(instant),
        recurrence.next_after(until).map(instant),
        recurrence.count_between(from, until, MOST_COUNTED) as i64,
    ))
}

/// `recur_internal.counts_from_start(schedule)`.
#[pg_extern(sql = false)]
fn counts_from_start(schedule: &str) -> bool {
    parse_schedule(schedule).or_raise().needs_start()
}

/// The arguments that preview and next_occurrence share, as SQL gave them.
struct Question<'a> {
    schedule: Option<&'a str>,
    timezone: Option<&'a str>,
    from: Option<TimestampWithTimeZone>,
    starts_at: Option<TimestampWithTimeZone>,
    ends_at: Option<TimestampWithTimeZone>,
    max_runs: Option<i32>,
    on_dst_gap: Option<&'a str>,
    on_dst_fold: Option<&'a str>,
}

impl Question<'_> {
    /// None if the schedule is valid, but has no occurrence from this start on.
    fn compile(self) -> Result<Option<(Recurrence, DateTime<Utc>)>, SqlError> {
        // NULL means the default of an argument; a schedule has none.
        let text = self.schedule.ok_or_else(|| missing("schedule"))?;
        let schedule = parse_schedule(text)?;
        let zone = self.timezone.map_or(Ok(Zone::UTC), parse_zone)?;
        let on_gap: OnGap = parse_policy(Column::OnDstGap, self.on_dst_gap)?;
        let on_fold: OnFold = parse_policy(Column::OnDstFold, self.on_dst_fold)?;
        let from = time::instant("from", self.from.ok_or_else(|| missing("from"))?)?;
        let mut starts_at = self
            .starts_at
            .map(|at| time::instant("starts_at", at))
            .transpose()?;
        // Some schedules count from their start. Without one, they start at "from".
        if starts_at.is_none() && schedule.needs_start() {
            starts_at = Some(from);
        }
        let bounds = Bounds {
            starts_at,
            ends_at: self
                .ends_at
                .map(|at| time::instant("ends_at", at))
                .transpose()?,
            max_runs: self.max_runs.map(parse_max_runs).transpose()?,
        };
        match Recurrence::new(Arc::new(schedule), zone, bounds, on_gap, on_fold) {
            Ok(recurrence) => Ok(Some((recurrence, from))),
            Err(RecurrenceError::NeverOccurs { .. }) => Ok(None),
            Err(error) => Err(SqlError::invalid_argument(
                "schedule",
                text,
                &error.to_string(),
            )),
        }
    }
}

pub(super) fn parse_schedule(text: &str) -> Result<Schedule, SqlError> {
    Schedule::parse(text).map_err(|error| invalid_schedule(text, &error))
}

fn invalid_schedule(text: &str, error: &ScheduleError) -> SqlError {
    let problem = SqlError::invalid_argument("schedule", text, &error.to_string());
    match error.hint() {
        Some(hint) => problem.with_hint(hint),
        None => problem,
    }
}

pub(super) fn missing(argument: &str) -> SqlError {
    SqlError::invalid_argument(argument, "NULL", "must have a value")
}

pub(super) fn parse_zone(name: &str) -> Result<Zone, SqlError> {
    Zone::parse(name).map_err(|error| {
        SqlError::invalid_argument("timezone", name, "not an IANA time zone")
            .with_hint(error.hint())
    })
}

/// A policy of an action, or its default.
fn parse_policy<T: FromStr + Default>(column: Column, value: Option<&str>) -> Result<T, SqlError> {
    let Some(value) = value else {
        return Ok(T::default());
    };
    let given = Value::<Jsonb>::Text(value.to_owned());
    checked(column, &given, &environment::environment())?;
    let unknown = |_| SqlError::invalid_argument(column.name(), value, "is no policy");
    value.parse().map_err(unknown)
}

pub(super) fn parse_max_runs(value: i32) -> Result<u32, SqlError> {
    u32::try_from(value)
        .ok()
        .filter(|&runs| runs > 0)
        .ok_or_else(|| {
            SqlError::invalid_argument("max_runs", &value.to_string(), "must be greater than 0")
                .with_hint("Leave it out for no limit.")
        })
}
