//! Dispatches that no schedule asked for: triggered by hand, or backfilled.

use super::duplicates::{self, Dedup};
use super::store::{self, Definition, NewDispatch};
use crate::access::{self, Actor, Visible};
use crate::alerts::alarms;
use crate::commands;
use crate::history::events::{self, DispatchEvent, WorkerEvents};
use crate::history::lines;
use crate::pg::error::{self, OrRaise, SqlError, given};
use crate::pg::jsonb::Jsonb;
use crate::pg::planner::PlannerPins;
use crate::pg::query::{Row, pg_uuid, pg_uuids, plain_uuid, queries};
use crate::pg::srf::ResultSet;
use crate::pg::time;
use crate::queue::announce::{self, ANNOUNCED_COLUMNS, Announceable};
use crate::queue::limits;
use crate::queue::outcomes;
use crate::queue::overlap;
use crate::queue::runs::{self, Runs};
use crate::runtime::environment::environment;
use crate::runtime::{clock, engine};
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::check_for_interrupts;
use pgrx::datum::{TimestampWithTimeZone, Uuid as PgUuid};
use pgrx::pg_sys::FunctionCallInfo;
use pgrx::prelude::*;
use recur_core::action::check_object;
use recur_core::backfill::{Backfill, Nothing};
use recur_core::decide::EndReason;
use recur_core::definition;
use recur_core::dispatch_id;
use recur_core::event::EventKind;
use recur_core::notify::Announcement;
use recur_core::policy::Overlap;
use recurrence::{Recurrence, ScheduleCache};
use serde_json::json;
use std::collections::HashSet;
use uuid::Uuid;

queries! {
    OVERLAP_POLICY = "dispatch/queries/overlap_policy.sql" (UUIDOID, INT4ARRAYOID);
    LOCK_DEFINITION = "dispatch/queries/lock_definition.sql" (UUIDOID, INT4ARRAYOID);
    INSERT_MANUAL = "dispatch/queries/insert_manual.sql" {announced: ANNOUNCED_COLUMNS}
        (UUIDOID, UUIDOID, TIMESTAMPTZOID, JSONBOID);
    LOCK_TIMER = "dispatch/queries/lock_timer.sql" (UUIDOID, INT4ARRAYOID);
    EXISTING_DISPATCHES = "dispatch/queries/existing_dispatches.sql" (UUIDARRAYOID);
    SET_LAST_RUN = "dispatch/queries/set_last_run.sql" {reason: EndReason::Exhausted.as_str()}
        (UUIDOID, TIMESTAMPTZOID, INT8OID);
}

type Instant = DateTime<Utc>;

fn unknown_action(action: Uuid) -> SqlError {
    SqlError::no_data_found(format!("no action has the id {action}"))
        .with_hint("recur.list() shows the actions that you can see.")
}

/// `recur.trigger(id, payload, overlap)`.
#[pg_extern(sql = false)]
fn trigger(id: Option<PgUuid>, payload: Option<Jsonb>, overlap: Option<&str>) -> PgUuid {
    let action = plain_uuid(given("id", id).or_raise());
    if let Some(payload) = &payload {
        check_object("payload", payload, &environment()).or_raise();
    }
    let overlap = overlap.map(|overlap| overlap.parse::<Overlap>().or_raise());
    let (visible, actor) = (access::visible(), Actor::current());
    let _pins = PlannerPins::set();
    let dispatch = engine::as_engine(|| {
        let has_key = make_room(action, overlap, &visible, &actor)?;
        let stand = has_key.then(|| duplicates::stand_in(action, payload, &actor));
        match stand.flatten() {
            Some(stand) => Ok(stand),
            None => insert_manual(action, payload, &visible, &actor),
        }
    });
    pg_uuid(dispatch.or_raise())
}

/// Follows the overlap policy: raises an error if a dispatch must give way to those that are unfinished, or cancels
/// them. The lock on the timer keeps the dispatcher, and other sessions that trigger the action, away meanwhile. True
/// if the action's dispatches have keys.
fn make_room(
    action: Uuid,
    asked: Option<Overlap>,
    visible: &Visible,
    actor: &Actor,
) -> Result<bool, SqlError> {
    let arguments = [pg_uuid(action).into(), visible.parameter().into()];
    let read = |row: &Row| {
        (
            row.required::<String>(1),
            row.required::<String>(2),
            row.required::<bool>(3),
        )
    };
    let (name, policy, has_key) = OVERLAP_POLICY
        .with(|query| query.row(&arguments, read))
        .ok_or_else(|| unknown_action(action))?;
    let policy = asked.map_or_else(|| policy.parse(), Ok)?;
    if !policy.needs_unfinished() {
        return Ok(has_key);
    }
    LOCK_TIMER
        .with(|query| query.row(&arguments, |_| ()))
        .ok_or_else(|| unknown_action(action))?;
    let now = clock::now();
    let unfinished = store::unfinished(vec![action], now);
    let unfinished = unfinished.get(&action).copied().unwrap_or_default();
    if !policy.admits(unfinished) {
        let state = if unfinished.pending {
            "pending"
        } else {
            "running"
        };
        let message = format!(
            "a dispatch of action \"{name}\" is {state}, and with overlap {policy} another one gives way"
        );
        let code = PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
        return Err(SqlError::new(code, message)
            .with_hint("Trigger it when that one is finished, or with overlap => 'allow'."));
    }
    if policy == Overlap::CancelPrevious {
        overlap::cancel_previous(vec![action], now, "the action was triggered", actor);
    }
    Ok(has_key)
}

fn insert_manual(
    action: Uuid,
    payload: Option<Jsonb>,
    visible: &Visible,
    actor: &Actor,
) -> Result<Uuid, SqlError> {
    runs::take_place(action, visible)?;
    let arguments = [pg_uuid(action).into(), visible.parameter().into()];
    let found = LOCK_DEFINITION.with(|query| query.row(&arguments, Watched::read));
    let watched = found.ok_or_else(|| unknown_action(action))?;
    if payload.is_some() {
        commands::check_override(&watched.provider)?;
    }
    limits::check_pending(watched.owner_id)?;
    let now = clock::now();
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
    watched.note(action, &[(id, now)], "manual", actor);
    Ok(id)
}

/// What is to be noted when dispatches of an action are made by hand.
struct Watched {
    owner_id: i32,
    record_events: Option<String>,
    has_alarms: bool,
    provider: String,
}

impl Watched {
    fn read(row: &Row) -> Watched {
        Watched {
            owner_id: row.required(1),
            record_events: row.get(2),
            has_alarms: row.required(3),
            provider: row.required(4),
        }
    }

    /// Records who made the dispatches: (dispatch, occurrence). Lets alarms look at them in time.
    fn note(&self, action: Uuid, dispatches: &[(Uuid, Instant)], trigger: &str, actor: &Actor) {
        let logged = dispatches.iter();
        lines::dispatched(trigger, logged.map(|(id, at)| (action, *id, *at)));
        if outcomes::is_recorded(EventKind::Triggered)(self.record_events.as_deref()) {
            let events = dispatches.iter().map(|(id, occurrence)| DispatchEvent {
                dispatch: *id,
                action: Some(action),
                owner_id: self.owner_id,
                detail: json!({ "trigger": trigger, "scheduled_at": time::rfc3339(*occurrence) }),
            });
            events::record_dispatches(EventKind::Triggered, &events.collect::<Vec<_>>(), actor);
        }
        if self.has_alarms {
            alarms::look_in_time(action, clock::now());
        }
    }
}

fn note_backfill(action: Uuid, made: &[NewDispatch], visible: &Visible, actor: &Actor) {
    let arguments = [pg_uuid(action).into(), visible.parameter().into()];
    if let Some(watched) = LOCK_DEFINITION.with(|query| query.row(&arguments, Watched::read)) {
        let dispatches: Vec<_> = made.iter().map(|one| (one.id, one.occurrence)).collect();
        watched.note(action, &dispatches, "backfill", actor);
    }
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
    beyond_max_runs: Option<bool>,
    call: FunctionCallInfo,
) {
    let action = plain_uuid(given("id", id).or_raise());
    let range = Range::checked(from, until).or_raise();
    let most = Most {
        limit: checked_limit(limit).or_raise(),
        is_beyond_max_runs: beyond_max_runs.unwrap_or(false),
    };
    let (visible, actor) = (access::visible(), Actor::current());
    let result = ResultSet::begin(call);
    let _pins = PlannerPins::set();
    let made = engine::as_engine(|| {
        let made = dispatch_missing(action, range, most, &visible, &actor)?;
        if let Ok(made) = &made {
            note_backfill(action, made, &visible, &actor);
        }
        Ok::<_, SqlError>(made)
    });
    let made = made.or_raise();
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

/// How many dispatches a backfill makes at most.
#[derive(Clone, Copy)]
struct Most {
    limit: usize,
    is_beyond_max_runs: bool,
}

impl Most {
    /// How many runs the action has left; None where that does not matter.
    fn places(self, action: Uuid, definition: &Definition, run_count: i64) -> Option<usize> {
        let max_runs = i64::from(definition.max_runs.filter(|_| !self.is_beyond_max_runs)?);
        let taken = match definition.counts_completed {
            true => runs::count(vec![action])
                .remove(&action)
                .map_or(0, Runs::taken),
            false => run_count,
        };
        Some(usize::try_from(max_runs - taken).unwrap_or(0))
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
        if end > clock::now() {
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
    most: Most,
    visible: &Visible,
    actor: &Actor,
) -> Result<Result<Vec<NewDispatch>, Nothing>, SqlError> {
    let arguments = [pg_uuid(action).into(), visible.parameter().into()];
    let timer = LOCK_TIMER
        .with(|query| query.row(&arguments, |row| (row.instant(1), row.required::<i64>(2))));
    let (next_run_at, run_count) = timer.ok_or_else(|| unknown_action(action))?;
    let mut definitions = store::read_definitions(vec![action]);
    let definition = definitions
        .remove(&action)
        .ok_or_else(|| unknown_action(action))?;
    let recurrence = compile(&definition)?;
    let places = most.places(action, &definition, run_count);
    let most = match Dedup::of(&definition) {
        Some(_) => most.limit.min(duplicates::MOST_BACKFILLED),
        None => most.limit,
    };
    let limit = places.map_or(most, |places| places.min(most));
    if limit == 0 {
        return Ok(Err(Nothing::NoRunLeft));
    }
    let just_before = range.from - TimeDelta::microseconds(1);
    let occurrences = recurrence
        .occurrences_after(just_before)
        .map(|occurrence| occurrence.at)
        // From next_run_at on, the dispatcher dispatches.
        .take_while(|at| *at <= range.until && next_run_at.is_none_or(|next| *at < next));
    let pages = insert_pages(action, &definition, occurrences, limit, actor);
    let Pages { made, found, .. } = pages;
    if pages.duplicates > 0 && made.is_empty() {
        return Ok(Ok(made));
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
        (made.len() as i64).into(),
    ];
    let is_over = SET_LAST_RUN.with(|query| query.row(&arguments, |row| row.required::<bool>(1)));
    if is_over == Some(true) {
        lines::exhausted(&[action]);
        let mut end = WorkerEvents::default();
        end.add(action, EventKind::Exhausted, &serde_json::json!({}));
        end.record();
    }
    if places == Some(made.len()) {
        error::notice(
            "the backfill has used up the runs that max_runs leaves".to_owned(),
            Some("beyond_max_runs => true goes on nevertheless."),
        );
    }
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

/// What a backfill did with the occurrences that it looked at.
#[derive(Default)]
struct Pages {
    made: Vec<NewDispatch>,
    found: usize,
    duplicates: usize,
}

/// Inserts dispatches until there are as many as may be, duplicates included.
fn insert_pages(
    action: Uuid,
    definition: &Definition,
    mut occurrences: impl Iterator<Item = Instant>,
    limit: usize,
    actor: &Actor,
) -> Pages {
    let mut pages = Pages::default();
    while pages.made.len() + pages.duplicates < limit {
        check_for_interrupts!();
        let page: Vec<Instant> = occurrences.by_ref().take(PAGE).collect();
        pages.found += page.len();
        let left = limit - pages.made.len() - pages.duplicates;
        let (inserted, duplicates) = insert_page(action, definition, &page, left, actor);
        pages.made.extend(inserted);
        pages.duplicates += duplicates;
        if page.len() < PAGE {
            break;
        }
    }
    if pages.duplicates > 0 {
        error::notice(
            format!(
                "{} occurrences have the dedup_key of a pending dispatch",
                pages.duplicates
            ),
            Some("Set dedup_window of the action to 0 for a dispatch of each occurrence."),
        );
    }
    pages
}

fn insert_page(
    action: Uuid,
    definition: &Definition,
    page: &[Instant],
    limit: usize,
    actor: &Actor,
) -> (Vec<NewDispatch>, usize) {
    let ids = page
        .iter()
        .map(|at| dispatch_id::of_occurrence(action, *at));
    let arguments = [pg_uuids(ids).into()];
    let existing = EXISTING_DISPATCHES.with(|query| query.rows(&arguments, |row| row.uuid(1)));
    let existing: HashSet<Uuid> = existing.into_iter().collect();
    let clock = clock::now();
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
    let duplicates = duplicates::drop_backfilled(&mut new, definition, actor);
    let inserted = store::backfill_dispatches(&new);
    // A report may have moved a dispatch to the history between the two statements.
    let removed = store::remove_repeated(inserted.iter().copied().collect());
    new.retain(|one| inserted.contains(&one.id) && !removed.contains(&one.id));
    (new, duplicates)
}
