//! Dispatches that no schedule asked for: triggered by hand, or backfilled.

use super::store::{self, Definition, NewDispatch};
use crate::access::{self, Visible};
use crate::pg::error::{self, OrRaise, SqlError, given};
use crate::pg::jsonb::Jsonb;
use crate::pg::planner::PlannerPins;
use crate::pg::query::{pg_uuid, pg_uuids, plain_uuid, queries};
use crate::pg::srf::ResultSet;
use crate::pg::time;
use crate::queue::announce::{self, ANNOUNCED_COLUMNS, Announceable};
use crate::runtime::engine;
use crate::runtime::environment::environment;
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::check_for_interrupts;
use pgrx::datum::{TimestampWithTimeZone, Uuid as PgUuid};
use pgrx::pg_sys::FunctionCallInfo;
use pgrx::prelude::*;
use recur_core::action::check_object;
use recur_core::backfill::{Backfill, Nothing};
use recur_core::definition;
use recur_core::dispatch_id;
use recur_core::notify::Announcement;
use recurrence::{Recurrence, ScheduleCache};
use std::collections::HashSet;
use uuid::Uuid;

queries! {
    LOCK_DEFINITION = "dispatch/queries/lock_definition.sql" (UUIDOID, INT4ARRAYOID);
    INSERT_MANUAL = "dispatch/queries/insert_manual.sql" {announced: ANNOUNCED_COLUMNS}
        (UUIDOID, UUIDOID, TIMESTAMPTZOID, JSONBOID);
    LOCK_TIMER = "dispatch/queries/lock_timer.sql" (UUIDOID, INT4ARRAYOID);
    EXISTING_DISPATCHES = "dispatch/queries/existing_dispatches.sql" (UUIDARRAYOID);
    SET_LAST_RUN = "dispatch/queries/set_last_run.sql" (UUIDOID, TIMESTAMPTZOID);
}

type Instant = DateTime<Utc>;

fn unknown_action(action: Uuid) -> SqlError {
    SqlError::no_data_found(format!("no action has the id {action}"))
        .with_hint("recur.list() shows the actions that you can see.")
}

/// `recur.trigger(id, payload)`.
#[pg_extern(sql = false)]
fn trigger(id: Option<PgUuid>, payload: Option<Jsonb>) -> PgUuid {
    let action = plain_uuid(given("id", id).or_raise());
    if let Some(payload) = &payload {
        check_object("payload", payload, &environment()).or_raise();
    }
    let visible = access::visible();
    let _pins = PlannerPins::set();
    let dispatch = engine::as_engine(|| insert_manual(action, payload, &visible));
    pg_uuid(dispatch.or_raise())
}

fn insert_manual(
    action: Uuid,
    payload: Option<Jsonb>,
    visible: &Visible,
) -> Result<Uuid, SqlError> {
    let arguments = [pg_uuid(action).into(), visible.parameter().into()];
    let found = LOCK_DEFINITION.with(|query| query.row(&arguments, |_| ()));
    found.ok_or_else(|| unknown_action(action))?;
    let now = time::now();
    let id = dispatch_id::random(now);
    let arguments = [
        pg_uuid(id).into(),
        pg_uuid(action).into(),
        time::timestamptz(now).into(),
        payload.into(),
    ];
    let inserted = INSERT_MANUAL.with(|query| query.row(&arguments, Announceable::read));
    let dispatch = inserted.ok_or_else(|| unknown_action(action))?;
    announce::announce(dispatch.announcement().as_slice());
    Ok(id)
}

const LARGEST_BACKFILL: i32 = 10_000;
/// Occurrences are looked up in pages of this size.
const PAGE: usize = 1_000;

/// `recur.backfill(id, "from", until, "limit")`.
#[pg_extern(sql = false)]
fn backfill(
    id: Option<PgUuid>,
    from: Option<TimestampWithTimeZone>,
    until: Option<TimestampWithTimeZone>,
    limit: Option<i32>,
    call: FunctionCallInfo,
) {
    let action = plain_uuid(given("id", id).or_raise());
    let range = Range::checked(from, until).or_raise();
    let limit = checked_limit(limit).or_raise();
    let visible = access::visible();
    let result = ResultSet::begin(call);
    let _pins = PlannerPins::set();
    let made = engine::as_engine(|| dispatch_missing(action, range, limit, &visible)).or_raise();
    let made = made.unwrap_or_else(|nothing| {
        error::notice(format!("nothing to backfill: {nothing}"), nothing.hint());
        Vec::new()
    });
    for one in made {
        result.put(&[
            pg_uuid(one.id).into(),
            time::timestamptz(one.occurrence).into(),
        ]);
    }
}

/// The instants that a backfill covers, both included.
#[derive(Clone, Copy)]
struct Range {
    from: Instant,
    until: Instant,
}

impl Range {
    fn checked(
        from: Option<TimestampWithTimeZone>,
        until: Option<TimestampWithTimeZone>,
    ) -> Result<Range, SqlError> {
        let shown = |instant: Option<Instant>| instant.map_or("NULL".to_owned(), time::shown);
        let instant = |name, value: Option<_>| value.map(|at| time::instant(name, at)).transpose();
        let (from, until) = (instant("from", from)?, instant("until", until)?);
        let before_start = || {
            let problem = format!("must not lie before \"from\", which is \"{}\"", shown(from));
            SqlError::invalid_argument("until", &shown(until), &problem)
        };
        let (Some(start), Some(end)) = (from, until) else {
            return Err(before_start());
        };
        if end < start {
            return Err(before_start());
        }
        if end > time::now() {
            return Err(SqlError::invalid_argument(
                "until",
                &shown(until),
                "must not lie in the future",
            )
            .with_hint("The schedule itself dispatches future occurrences."));
        }
        Ok(Range {
            from: start,
            until: end,
        })
    }
}

fn checked_limit(limit: Option<i32>) -> Result<usize, SqlError> {
    let shown = limit.map_or("NULL".to_owned(), |limit| limit.to_string());
    match limit {
        Some(limit) if limit > LARGEST_BACKFILL => {
            let problem = format!("must not be more than {LARGEST_BACKFILL}");
            Err(
                SqlError::invalid_argument("limit", &shown, &problem).with_hint(
                    "Call recur.backfill again: occurrences that have a dispatch are left out.",
                ),
            )
        }
        Some(limit) if limit > 0 => Ok(limit as usize),
        _ => Err(SqlError::invalid_argument(
            "limit",
            &shown,
            "must be at least 1",
        )),
    }
}

/// Dispatches the occurrences of a range that have no dispatch, or says why there is nothing to dispatch. The lock on
/// the timer keeps the dispatcher away meanwhile.
fn dispatch_missing(
    action: Uuid,
    range: Range,
    limit: usize,
    visible: &Visible,
) -> Result<Result<Vec<NewDispatch>, Nothing>, SqlError> {
    let arguments = [pg_uuid(action).into(), visible.parameter().into()];
    let timer = LOCK_TIMER.with(|query| query.row(&arguments, |row| row.instant(1)));
    let next_run_at = timer.ok_or_else(|| unknown_action(action))?;
    let mut definitions = store::read_definitions(vec![action]);
    let definition = definitions
        .remove(&action)
        .ok_or_else(|| unknown_action(action))?;
    let recurrence = compile(&definition)?;
    let mut made: Vec<NewDispatch> = Vec::new();
    let mut found = 0;
    let mut after = range.from - TimeDelta::microseconds(1);
    while made.len() < limit {
        check_for_interrupts!();
        let page: Vec<Instant> = recurrence
            .occurrences_after(after)
            .map(|occurrence| occurrence.at)
            // From next_run_at on, the dispatcher dispatches.
            .take_while(|at| *at <= range.until && next_run_at.is_none_or(|next| *at < next))
            .take(PAGE)
            .collect();
        found += page.len();
        made.extend(insert_page(action, &definition, &page, limit - made.len()));
        match page.last() {
            Some(last) if page.len() == PAGE => after = *last,
            _ => break,
        }
    }
    let Some(latest) = made.last() else {
        let backfill = Backfill {
            from: range.from,
            until: range.until,
            bounds: recurrence.bounds(),
            next_run_at,
            dispatched: found,
        };
        return Ok(Err(backfill.nothing()));
    };
    let arguments = [
        pg_uuid(action).into(),
        time::timestamptz(latest.occurrence).into(),
    ];
    SET_LAST_RUN.with(|query| query.execute(&arguments));
    let announcements: Vec<Announcement> = made
        .iter()
        .map(|one| definition.announcement(one))
        .collect();
    announce::announce(&announcements);
    Ok(Ok(made))
}

fn compile(definition: &Definition) -> Result<Recurrence, SqlError> {
    let compiled = definition::compile(&definition.stored(), &mut ScheduleCache::new(1));
    let compiled =
        compiled.map_err(|error| SqlError::invalid_argument("schedule", "", &error.to_string()))?;
    Ok(compiled.recurrence)
}

fn insert_page(
    action: Uuid,
    definition: &Definition,
    page: &[Instant],
    limit: usize,
) -> Vec<NewDispatch> {
    let ids = page
        .iter()
        .map(|at| dispatch_id::of_occurrence(action, *at));
    let arguments = [pg_uuids(ids).into()];
    let existing = EXISTING_DISPATCHES.with(|query| query.rows(&arguments, |row| row.uuid(1)));
    let existing: HashSet<Uuid> = existing.into_iter().collect();
    let clock = time::now();
    let missing = page.iter().map(|at| NewDispatch {
        id: dispatch_id::of_occurrence(action, *at),
        action,
        occurrence: *at,
        available_at: clock,
        definition: definition.tid,
    });
    let mut new: Vec<NewDispatch> = missing
        .filter(|one| !existing.contains(&one.id))
        .take(limit)
        .collect();
    let inserted = store::backfill_dispatches(&new);
    // A report may have moved a dispatch to the history between the two statements.
    let removed = store::remove_repeated(inserted.iter().copied().collect());
    new.retain(|one| inserted.contains(&one.id) && !removed.contains(&one.id));
    new
}
