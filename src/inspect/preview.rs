//! Schedules from SQL: validate and preview. Only the preview of an action reads tables, as the role that asks.

use crate::actions::resolve;
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::jsonb::Jsonb;
use crate::pg::query::{pg_uuid, queries};
use crate::pg::time;
use crate::runtime::{environment, settings};
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::datum::{Timestamp, TimestampWithTimeZone};
use pgrx::iter::TableIterator;
use pgrx::{check_for_interrupts, name, prelude::*};
use recur_core::action::{Column, Value, checked};
use recurrence::{
    Bounds, Occurrence, OnFold, OnGap, Recurrence, RecurrenceError, Schedule, ScheduleError, Zone,
};
use std::str::FromStr;
use std::sync::Arc;
use uuid::Uuid;

queries! {
    PREVIEW_ACTION = "inspect/queries/preview_action.sql" (UUIDOID, TEXTOID, TIMESTAMPTZOID, INT4OID);
}

/// More rows than a person reads, in a bounded time.
const MOST_PREVIEWED: i32 = 10_000;
const DEFAULT_COUNT: i32 = 10;
/// The note on the first occurrence of a schedule that is counted from its start, and has none.
const FIRST_AT_ONCE: &str = "the moment of creation: without starts_at the first run is at once";
const MICROSECOND: TimeDelta = TimeDelta::microseconds(1);

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

/// `recur_internal.checked_count(count)`: how many occurrences are asked for.
#[pg_extern(sql = false)]
fn checked_count(count: Option<i32>) -> i32 {
    let count = count.unwrap_or(DEFAULT_COUNT);
    if !(0..=MOST_PREVIEWED).contains(&count) {
        SqlError::invalid_argument("count", &count.to_string(), "must lie between 0 and 10000")
            .raise();
    }
    count
}

/// `recur.preview(…)`: the next occurrences strictly after `from`; of a schedule that counts from its start, and has
/// none, those of an action that is created at `from`.
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
    let count = checked_count(count);
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
    if let Some(id) = action_meant(schedule) {
        return TableIterator::new(question.of_action(id, count).or_raise());
    }
    let is_start_given = starts_at.is_some();
    let compiled = question.compile();
    let compiled = compiled.map_err(|error| hinting_at_action(schedule, "preview", error));
    let Some((recurrence, from)) = compiled.or_raise() else {
        return TableIterator::new(Vec::new());
    };
    // As recur.create does: without a start, the schedule is counted from now, which may be its first occurrence.
    let start = recurrence.bounds().starts_at.filter(|_| !is_start_given);
    let from = start.map_or(from, |start| start - MICROSECOND);
    // One more than is shown: a silence may follow the last row.
    let occurrences: Vec<Occurrence> = recurrence
        .occurrences_after(from)
        .take(count as usize + 1)
        .collect();
    let note = |occurrence: &Occurrence, next: Option<&Occurrence>| {
        let silence = next.and_then(|next| recurrence.silence_between(*occurrence, *next));
        let notes = [
            (Some(occurrence.at) == start).then(|| FIRST_AT_ONCE.to_owned()),
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

/// `recur_internal.occurrences_around(…)`: the last occurrence at or before an instant, and the first after it.
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)]
fn occurrences_around(
    schedule: Option<&str>,
    timezone: Option<&str>,
    at: Option<TimestampWithTimeZone>,
    starts_at: Option<TimestampWithTimeZone>,
    ends_at: Option<TimestampWithTimeZone>,
    on_dst_gap: Option<&str>,
    on_dst_fold: Option<&str>,
) -> TableIterator<
    'static,
    (
        name!(previous, Option<TimestampWithTimeZone>),
        name!(next, Option<TimestampWithTimeZone>),
    ),
> {
    let given = at.ok_or_else(|| missing("at")).or_raise();
    let instant = time::instant("at", given).or_raise();
    let question = Question {
        schedule,
        timezone,
        from: at,
        starts_at,
        ends_at,
        max_runs: None,
        on_dst_gap,
        on_dst_fold,
    };
    let Some((recurrence, _)) = question.compile().or_raise() else {
        return TableIterator::once((None, None));
    };
    let shown = |occurrence: Occurrence| time::timestamptz(occurrence.at);
    TableIterator::once((
        recurrence.previous_or_at(instant).map(shown),
        recurrence.next_after(instant).map(shown),
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

/// A row of a preview: occurrence, local time, note.
type Previewed = (TimestampWithTimeZone, Timestamp, Option<String>);

/// The id of an action, where a schedule is expected: no schedule looks like one.
pub(super) fn action_meant(schedule: Option<&str>) -> Option<Uuid> {
    Uuid::parse_str(schedule?.trim()).ok()
}

impl Question<'_> {
    /// The occurrences of an action, which has bounds and policies of its own.
    fn of_action(&self, id: Uuid, count: i32) -> Result<Vec<Previewed>, SqlError> {
        let given = [
            ("starts_at", self.starts_at.is_some()),
            ("ends_at", self.ends_at.is_some()),
            ("max_runs", self.max_runs.is_some()),
            ("on_dst_gap", self.on_dst_gap.is_some()),
            ("on_dst_fold", self.on_dst_fold.is_some()),
        ];
        if let Some((argument, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            let message = format!("{argument} is given for action {id}, which has one of its own");
            return Err(
                SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message).with_hint(
                    "recur.compare(id, changes) shows what a change of the action would make.",
                ),
            );
        }
        let arguments = [
            pg_uuid(id).into(),
            self.timezone.into(),
            self.from.into(),
            count.into(),
        ];
        let rows = PREVIEW_ACTION.with(|query| {
            query.rows(&arguments, |row| {
                (row.required(1), row.required(2), row.get(3))
            })
        });
        Ok(rows)
    }

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

/// Says how to mean an action, where its name was given and a schedule is expected. Only functions that may read tables
/// can tell.
pub(super) fn hinting_at_action(
    schedule: Option<&str>,
    function: &str,
    error: SqlError,
) -> SqlError {
    let text = schedule.unwrap_or_default();
    if Schedule::parse(text).is_ok() || !resolve::is_name(text) {
        return error;
    }
    let name = text.replace('\'', "''");
    error.with_hint(format!(
        "It is the name of an action: recur.{function}(recur.id_of('{name}'))."
    ))
}

pub(super) fn parse_schedule(text: &str) -> Result<Schedule, SqlError> {
    Schedule::parse(text).map_err(|error| invalid_schedule(text, &error))
}

fn invalid_schedule(text: &str, error: &ScheduleError) -> SqlError {
    if action_meant(Some(text)).is_some() {
        return SqlError::invalid_argument("schedule", text, "is the id of an action, no schedule")
            .with_hint("recur.preview and recur.describe understand ids; recur.get(id) has the action's schedule.");
    }
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
