//! Schedules in words: describe and lint. Only the description of an action reads tables, as the role that asks.

use super::preview::{
    action_meant, hinting_at_action, missing, parse_max_runs, parse_schedule, parse_zone,
};
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::query::{pg_uuid, queries};
use crate::pg::time;
use crate::runtime::clock;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::iter::TableIterator;
use pgrx::{name, prelude::*};
use recurrence::{Bounds, Style, Zone};

queries! {
    DESCRIBE_ACTION = "inspect/queries/describe_action.sql" (UUIDOID, TEXTOID);
}

/// `recur.describe(schedule, timezone, style)`.
#[pg_extern(sql = false)]
fn describe(schedule: Option<&str>, timezone: Option<&str>, style: Option<&str>) -> String {
    let Some(id) = action_meant(schedule) else {
        let described = describe_as(schedule, timezone, style, &Bounds::default());
        return described
            .map_err(|error| hinting_at_action(schedule, "describe", error))
            .or_raise();
    };
    if timezone.is_some() {
        let message = format!("timezone is given for action {id}, which has one of its own");
        SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
            .with_hint("Leave it out; style is named: style => '12h'.")
            .raise();
    }
    let arguments = [pg_uuid(id).into(), style.into()];
    let described = DESCRIBE_ACTION.with(|query| query.row(&arguments, |row| row.required(1)));
    described.unwrap_or_default()
}

/// `recur_internal.describe_within(schedule, timezone, style, starts_at, ends_at, max_runs)`.
#[pg_extern(sql = false)]
fn describe_within(
    schedule: Option<&str>,
    timezone: Option<&str>,
    style: Option<&str>,
    starts_at: Option<TimestampWithTimeZone>,
    ends_at: Option<TimestampWithTimeZone>,
    max_runs: Option<i32>,
) -> String {
    let instant = |name: &str, at: Option<TimestampWithTimeZone>| {
        at.map(|at| time::instant(name, at)).transpose().or_raise()
    };
    let bounds = Bounds {
        starts_at: instant("starts_at", starts_at),
        ends_at: instant("ends_at", ends_at),
        max_runs: max_runs.map(parse_max_runs).transpose().or_raise(),
    };
    describe_as(schedule, timezone, style, &bounds).or_raise()
}

fn describe_as(
    schedule: Option<&str>,
    timezone: Option<&str>,
    style: Option<&str>,
    bounds: &Bounds,
) -> Result<String, SqlError> {
    let schedule = parse_schedule(schedule.ok_or_else(|| missing("schedule"))?)?;
    let zone = timezone.map(parse_zone).transpose()?;
    let style = style.map_or(Ok(Style::default()), |name| {
        name.parse()
            .map_err(|_| SqlError::invalid_argument("style", name, "must be 24h or 12h"))
    })?;
    Ok(schedule.describe_as(style, zone, bounds))
}

/// `recur.lint(schedule, timezone, starts_at)`: what is valid and probably not meant.
#[pg_extern(sql = false)]
fn lint(
    schedule: Option<&str>,
    timezone: Option<&str>,
    starts_at: Option<TimestampWithTimeZone>,
) -> TableIterator<
    'static,
    (
        name!(code, &'static str),
        name!(finding, String),
        name!(remedy, String),
    ),
> {
    let schedule = schedule.ok_or_else(|| missing("schedule")).or_raise();
    let schedule = parse_schedule(schedule).or_raise();
    let zone = timezone.map_or(Ok(Zone::UTC), parse_zone).or_raise();
    let starts_at = starts_at
        .map(|at| time::instant("starts_at", at))
        .transpose()
        .or_raise();
    let findings = recurrence::lint(&schedule, zone, starts_at, clock::now());
    TableIterator::new(
        findings
            .into_iter()
            .map(|finding| (finding.code.name(), finding.finding, finding.remedy)),
    )
}
