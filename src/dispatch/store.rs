//! The dispatcher's SQL: the only place of this module that talks to the database. Each query stands in a file of its
//! own under `sql/queries/`.

use super::decide::Unfinished;
use super::query::{Row, instant_at, queries, required, uuid_at, uuids};
use crate::pg::peek::{self, From};
use crate::pg::{installation, time};
use chrono::{DateTime, Utc};
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys;
use pgrx::spi::SpiResult;
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

queries! {
    LOCK_DUE = "lock_due.sql" (TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID);
    LOCK_DUE_AHEAD = "lock_due_ahead.sql" (TIMESTAMPTZOID, TIDOID, TIMESTAMPTZOID, INT8OID);
    LOCK_DUE_UNTENANTED = "lock_due_untenanted.sql" (TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID);
    LOCK_DUE_FAIRLY = "lock_due_fairly.sql" (TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID, TEXTOID, INT4OID);
    READ_DEFINITIONS = "read_definitions.sql" (UUIDARRAYOID);
    UNFINISHED = "unfinished.sql" (UUIDARRAYOID, TIMESTAMPTZOID);
    TAKE_BACK_FINISHED = "take_back_finished.sql" (UUIDARRAYOID);
    CANCEL_PREVIOUS = "cancel_previous.sql" (UUIDARRAYOID);
    INSERT_DISPATCHES = "insert_dispatches.sql" (UUIDARRAYOID, TIDARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID);
    INSERT_MISSING_DISPATCHES = "insert_missing_dispatches.sql" (UUIDARRAYOID, UUIDARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID);
    ADVANCE_LOCKED_TIMERS = "advance_locked_timers.sql" (TIDARRAYOID, INT4ARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, TEXTARRAYOID);
    ADVANCE_TIMERS = "advance_timers.sql" (UUIDARRAYOID, INT4ARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, TEXTARRAYOID);
    RECORD_ERRORS = "record_errors.sql" (UUIDARRAYOID, TEXTARRAYOID, TIMESTAMPTZOID, INT4OID);
    TELL_CONTACTS = "tell_contacts.sql" (UUIDARRAYOID, TEXTARRAYOID);
    NOTIFY = "notify.sql" (TEXTARRAYOID, TEXTARRAYOID);
    RECORD_EVENTS = "record_events.sql" (UUIDARRAYOID, TEXTARRAYOID, TEXTARRAYOID);
    EXPIRE_LEASES = "expire_leases.sql" (TIMESTAMPTZOID, INT4OID, UUIDARRAYOID);
    EXPIRED_LEASES = "expired_leases.sql" (TIMESTAMPTZOID, INT4OID);
    TURN_HISTORY = "turn_history.sql" (TEXTOID, TIMESTAMPTZOID);
}

type Instant = DateTime<Utc>;
/// Where in its table a row is. It stays there while nobody can change it.
pub type Place = pg_sys::ItemPointerData;

/// A place among the timers in the order of when they are due.
#[derive(Clone, Copy)]
pub struct Position {
    pub due_at: Instant,
    place: Place,
}

impl Position {
    /// Before all that are due then.
    pub fn before(due_at: Instant) -> Position {
        Position {
            due_at,
            place: Place::default(),
        }
    }
}

/// A due timer that this transaction has locked.
#[derive(Clone)]
pub struct LockedTimer {
    pub action: Uuid,
    pub due_at: Instant,
    pub next_run_at: Instant,
    pub last_run_at: Option<Instant>,
    pub run_count: i64,
    pub place: Place,
}

/// What the decision needs of a definition, as stored: not yet parsed. Spans are in microseconds.
pub struct StoredDefinition {
    pub action: Uuid,
    pub schedule: String,
    pub timezone: String,
    pub starts_at: Option<Instant>,
    pub ends_at: Option<Instant>,
    pub max_runs: Option<i32>,
    pub on_dst_gap: String,
    pub on_dst_fold: String,
    pub misfire: String,
    pub misfire_grace: Option<i64>,
    pub catchup_limit: i32,
    pub overlap: String,
    pub jitter: Option<i64>,
    pub horizon: Option<i64>,
    pub horizon_count: Option<i32>,
    pub notify_channel: Option<String>,
    pub provider: String,
    pub action_type: String,
    pub namespace: String,
    pub tenant: String,
    /// Are all of its dispatches to be found after they are over?
    pub keeps_history: bool,
    pub place: Place,
}

impl LockedTimer {
    pub fn position(&self) -> Position {
        Position {
            due_at: self.due_at,
            place: self.place,
        }
    }
}

fn locked_timer(row: &Row) -> SpiResult<LockedTimer> {
    Ok(LockedTimer {
        action: uuid_at(row, 1)?,
        due_at: required(instant_at(row, 2)?)?,
        next_run_at: required(instant_at(row, 3)?)?,
        last_run_at: instant_at(row, 4)?,
        run_count: required(row.get(5)?)?,
        place: required(row.get(6)?)?,
    })
}

pub fn lock_due(from: Instant, now: Instant, limit: i64) -> SpiResult<Vec<LockedTimer>> {
    let arguments = [
        time::timestamptz(from).into(),
        time::timestamptz(now).into(),
        limit.into(),
    ];
    LOCK_DUE.with(|query| query.rows(&arguments, locked_timer))
}

/// What will be due, from behind a position on.
pub fn lock_due_ahead(after: Position, until: Instant, limit: i64) -> SpiResult<Vec<LockedTimer>> {
    let arguments = [
        time::timestamptz(after.due_at).into(),
        after.place.into(),
        time::timestamptz(until).into(),
        limit.into(),
    ];
    LOCK_DUE_AHEAD.with(|query| query.rows(&arguments, locked_timer))
}

/// Those of tenant `default` alone.
pub fn lock_due_untenanted(from: Instant, now: Instant, limit: i64) -> SpiResult<Vec<LockedTimer>> {
    let arguments = [
        time::timestamptz(from).into(),
        time::timestamptz(now).into(),
        limit.into(),
    ];
    LOCK_DUE_UNTENANTED.with(|query| query.rows(&arguments, locked_timer))
}

/// The timers, and the tenant after which the next turn begins: all before it have had theirs.
pub fn lock_due_fairly(
    from: Instant,
    now: Instant,
    limit: i64,
    after_tenant: &str,
) -> SpiResult<(Vec<LockedTimer>, String)> {
    /// To pass so many in one turn takes a few milliseconds.
    const TENANTS: i32 = 500;
    let arguments = [
        time::timestamptz(from).into(),
        time::timestamptz(now).into(),
        limit.into(),
        after_tenant.into(),
        TENANTS.into(),
    ];
    let mut locked = Vec::new();
    let (mut served, mut passed) = (None, None);
    for (timer, tenant, hop) in LOCK_DUE_FAIRLY.with(|query| {
        query.rows(&arguments, |row| {
            let tenant: Option<String> = row.get(7)?;
            let timer = tenant.is_some().then(|| locked_timer(row)).transpose()?;
            Ok((timer, tenant, row.get(8)?))
        })
    })? {
        locked.extend(timer);
        served = tenant;
        passed = hop;
    }
    // A full batch may have left out some of those that were passed. Behind the last tenant comes the first one.
    let reached = match locked.len() as i64 == limit {
        true => served,
        false => passed,
    };
    Ok((locked, reached.unwrap_or_default()))
}

pub fn read_definitions(actions: Vec<Uuid>) -> SpiResult<HashMap<Uuid, StoredDefinition>> {
    let rows = READ_DEFINITIONS.with(|query| {
        query.rows(&[uuids(actions).into()], |row| {
            Ok(StoredDefinition {
                action: uuid_at(row, 1)?,
                schedule: required(row.get(2)?)?,
                timezone: required(row.get(3)?)?,
                starts_at: instant_at(row, 4)?,
                ends_at: instant_at(row, 5)?,
                max_runs: row.get(6)?,
                on_dst_gap: required(row.get(7)?)?,
                on_dst_fold: required(row.get(8)?)?,
                misfire: required(row.get(9)?)?,
                misfire_grace: row.get(10)?,
                catchup_limit: required(row.get(11)?)?,
                overlap: required(row.get(12)?)?,
                jitter: row.get(13)?,
                horizon: row.get(14)?,
                horizon_count: row.get(15)?,
                notify_channel: row.get(16)?,
                provider: required(row.get(17)?)?,
                action_type: required(row.get(18)?)?,
                namespace: required(row.get(19)?)?,
                tenant: required(row.get(20)?)?,
                keeps_history: required(row.get(21)?)?,
                place: required(row.get(22)?)?,
            })
        })
    })?;
    Ok(rows
        .into_iter()
        .map(|definition| (definition.action, definition))
        .collect())
}

pub fn unfinished(actions: Vec<Uuid>, now: Instant) -> SpiResult<HashMap<Uuid, Unfinished>> {
    if actions.is_empty() {
        return Ok(HashMap::new());
    }
    let arguments = [uuids(actions).into(), time::timestamptz(now).into()];
    let rows = UNFINISHED.with(|query| {
        query.rows(&arguments, |row| {
            let unfinished = Unfinished {
                pending: required(row.get(2)?)?,
                running: required(row.get(3)?)?,
            };
            Ok((uuid_at(row, 1)?, unfinished))
        })
    })?;
    Ok(rows.into_iter().collect())
}

/// Removes those that are over already, and says which.
pub fn take_back_finished(dispatches: Vec<Uuid>) -> SpiResult<HashSet<Uuid>> {
    if dispatches.is_empty() {
        return Ok(HashSet::new());
    }
    let rows = TAKE_BACK_FINISHED
        .with(|query| query.rows(&[uuids(dispatches).into()], |row| uuid_at(row, 1)))?;
    Ok(rows.into_iter().collect())
}

pub fn cancel_previous(actions: Vec<Uuid>) -> SpiResult<()> {
    if actions.is_empty() {
        return Ok(());
    }
    CANCEL_PREVIOUS.with(|query| query.execute(&[uuids(actions).into()]))?;
    Ok(())
}

/// A dispatch to be inserted.
pub struct NewDispatch {
    pub id: Uuid,
    pub action: Uuid,
    pub occurrence: Instant,
    pub available_at: Instant,
    /// Of the action's definition.
    pub definition: Place,
}

/// A dispatch that is there already is an error, and so is a definition that is not where it was.
pub fn insert_dispatches(new: &[NewDispatch]) -> SpiResult<()> {
    if new.is_empty() {
        return Ok(());
    }
    let [ids, _, occurrences, available] = columns(new);
    let definitions: Vec<Place> = new.iter().map(|one| one.definition).collect();
    let arguments = [ids, definitions.into(), occurrences, available];
    let inserted = INSERT_DISPATCHES.with(|query| query.execute(&arguments))?;
    expect_all(inserted, new.len());
    Ok(())
}

/// Somebody has changed a row that he should have left alone: the batch is repeated, with care.
fn expect_all(found: usize, expected: usize) {
    if found != expected {
        pgrx::error!("pg_recur: {found} of {expected} rows were where they had been");
    }
}

/// The ids of those that were not there before.
pub fn insert_missing_dispatches(new: &[NewDispatch]) -> SpiResult<HashSet<Uuid>> {
    if new.is_empty() {
        return Ok(HashSet::new());
    }
    let rows =
        INSERT_MISSING_DISPATCHES.with(|query| query.rows(&columns(new), |row| uuid_at(row, 1)))?;
    Ok(rows.into_iter().collect())
}

fn columns(new: &[NewDispatch]) -> [DatumWithOid<'static>; 4] {
    let instants = |of: fn(&NewDispatch) -> Instant| -> Vec<_> {
        new.iter().map(|one| time::timestamptz(of(one))).collect()
    };
    [
        uuids(new.iter().map(|one| one.id)).into(),
        uuids(new.iter().map(|one| one.action)).into(),
        instants(|one| one.occurrence).into(),
        instants(|one| one.available_at).into(),
    ]
}

/// How a timer goes on.
pub struct Advance {
    pub action: Uuid,
    pub timer: Place,
    pub runs: i32,
    pub fired: Option<Instant>,
    pub next_run_at: Option<Instant>,
    pub due_at: Option<Instant>,
    pub ended_reason: Option<&'static str>,
}

/// The timers are where they were when they were locked.
pub fn advance_locked_timers(advances: &[Advance]) -> SpiResult<()> {
    if advances.is_empty() {
        return Ok(());
    }
    let places: Vec<Place> = advances.iter().map(|one| one.timer).collect();
    let arguments = advance_arguments(places.into(), advances);
    let advanced = ADVANCE_LOCKED_TIMERS.with(|query| query.execute(&arguments))?;
    expect_all(advanced, advances.len());
    Ok(())
}

/// Wherever they are.
pub fn advance_timers(advances: &[Advance]) -> SpiResult<()> {
    if advances.is_empty() {
        return Ok(());
    }
    let actions = uuids(advances.iter().map(|one| one.action));
    let arguments = advance_arguments(actions.into(), advances);
    ADVANCE_TIMERS.with(|query| query.execute(&arguments))?;
    Ok(())
}

fn advance_arguments<'a>(
    which: DatumWithOid<'a>,
    advances: &'a [Advance],
) -> [DatumWithOid<'a>; 6] {
    let instants = |of: fn(&Advance) -> Option<Instant>| -> Vec<_> {
        advances
            .iter()
            .map(|one| of(one).map(time::timestamptz))
            .collect()
    };
    let runs: Vec<i32> = advances.iter().map(|one| one.runs).collect();
    let ended: Vec<_> = advances.iter().map(|one| one.ended_reason).collect();
    [
        which,
        runs.into(),
        instants(|one| one.fired).into(),
        instants(|one| one.next_run_at).into(),
        instants(|one| one.due_at).into(),
        ended.into(),
    ]
}

/// What recording an error did to its action.
pub struct Recorded {
    pub action: Uuid,
    pub errors_in_a_row: i32,
    pub paused: bool,
}

pub fn record_errors(
    errors: &[(Uuid, String)],
    now: Instant,
    pause_after: i32,
) -> SpiResult<Vec<Recorded>> {
    if errors.is_empty() {
        return Ok(Vec::new());
    }
    let messages: Vec<_> = errors.iter().map(|(_, message)| message.clone()).collect();
    let arguments = [
        uuids(errors.iter().map(|(action, _)| *action)).into(),
        messages.into(),
        time::timestamptz(now).into(),
        pause_after.into(),
    ];
    RECORD_ERRORS.with(|query| {
        query.rows(&arguments, |row| {
            Ok(Recorded {
                action: uuid_at(row, 1)?,
                errors_in_a_row: required(row.get(2)?)?,
                paused: required(row.get(3)?)?,
            })
        })
    })
}

/// (action, problem).
pub fn tell_contacts(problems: Vec<(Uuid, String)>) -> SpiResult<()> {
    if problems.is_empty() {
        return Ok(());
    }
    let (actions, texts): (Vec<_>, Vec<_>) = problems.into_iter().unzip();
    TELL_CONTACTS.with(|query| query.execute(&[uuids(actions).into(), texts.into()]))?;
    Ok(())
}

/// The next instant at which anything is due, `from` this one on.
pub fn next_instant(from: Instant) -> Option<Instant> {
    peek::first(installation::find()?.timers_due, From::At(from))
}

/// The first one after this.
pub fn next_instant_after(after: Instant) -> Option<Instant> {
    peek::first(installation::find()?.timers_due, From::After(after))
}

/// (channel, payload), as arrays.
#[derive(Default)]
pub struct Notifications {
    pub channels: Vec<String>,
    pub payloads: Vec<String>,
}

impl Notifications {
    /// Each as (channel, payload).
    pub fn into_pairs(self) -> Vec<(String, String)> {
        self.channels.into_iter().zip(self.payloads).collect()
    }

    pub fn from_pairs(pairs: &[(String, String)]) -> Notifications {
        let (channels, payloads) = pairs.iter().cloned().unzip();
        Notifications { channels, payloads }
    }
}

pub fn notify(notifications: Notifications) -> SpiResult<()> {
    if notifications.payloads.is_empty() {
        return Ok(());
    }
    let arguments = [notifications.channels.into(), notifications.payloads.into()];
    NOTIFY.with(|query| query.execute(&arguments))?;
    Ok(())
}

/// (action, kind, detail), as arrays.
#[derive(Default)]
pub struct NewEvents {
    pub actions: Vec<Uuid>,
    pub kinds: Vec<&'static str>,
    pub details: Vec<String>,
}

impl NewEvents {
    pub fn add(&mut self, action: Uuid, kind: &'static str, detail: &serde_json::Value) {
        self.actions.push(action);
        self.kinds.push(kind);
        self.details.push(detail.to_string());
    }
}

pub fn record_events(events: NewEvents) -> SpiResult<()> {
    if events.actions.is_empty() {
        return Ok(());
    }
    let arguments = [
        uuids(events.actions).into(),
        events.kinds.into(),
        events.details.into(),
    ];
    RECORD_EVENTS.with(|query| query.execute(&arguments))?;
    Ok(())
}

/// Gives dispatches back, or only these, whose consumers have not reported in time; returns how many.
pub fn expire_leases(now: Instant, limit: i32, only: Option<&[Uuid]>) -> SpiResult<i64> {
    EXPIRE_LEASES.with(|query| {
        let only = only.map(|ids| uuids(ids.iter().copied()));
        let arguments = [time::timestamptz(now).into(), limit.into(), only.into()];
        let rows = query.rows(&arguments, |row| required(row.get(1)?))?;
        Ok(rows.into_iter().next().unwrap_or(0))
    })
}

/// Whose consumers have not reported in time.
pub fn expired_leases(now: Instant, limit: i32) -> SpiResult<Vec<Uuid>> {
    EXPIRED_LEASES.with(|query| {
        let arguments = [time::timestamptz(now).into(), limit.into()];
        query.rows(&arguments, |row| uuid_at(row, 1))
    })
}

/// When the next lease ends, or ended.
pub fn next_lease_end(from: From) -> Option<Instant> {
    peek::first(installation::find()?.live_dispatches_leased, from)
}

/// Opens the next partition of the history if it is time. True if it was.
pub fn turn_history(retention: &str, now: Instant) -> SpiResult<bool> {
    TURN_HISTORY.with(|query| {
        let arguments = [retention.into(), time::timestamptz(now).into()];
        let rows = query.rows(&arguments, |row| required(row.get(1)?))?;
        Ok(rows.into_iter().next().unwrap_or(false))
    })
}
