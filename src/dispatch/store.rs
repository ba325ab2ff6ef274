//! The dispatcher's queries on timers, definitions and new dispatches.

use crate::pg::index_scan::{self, LowerBound};
use crate::pg::query::{Query, Row, pg_uuids, queries};
use crate::pg::time;
use crate::runtime::installation;
use chrono::{DateTime, TimeDelta, Utc};
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys;
use recur_core::decide::{self, Ahead, Unfinished};
use recur_core::definition::StoredDefinition;
use recur_core::notify::Announcement;
use std::collections::{HashMap, HashSet};
use std::thread::LocalKey;
use uuid::Uuid;

queries! {
    LOCK_DUE = "dispatch/queries/lock_due.sql" (TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID);
    LOCK_DUE_AHEAD = "dispatch/queries/lock_due_ahead.sql" (TIMESTAMPTZOID, TIDOID, TIMESTAMPTZOID, INT8OID);
    SKIPPED_LOCKED = "dispatch/queries/skipped_locked.sql" (TIMESTAMPTZOID, TIMESTAMPTZOID, UUIDARRAYOID, INT8OID);
    READ_DEFINITIONS = "dispatch/queries/read_definitions.sql" (UUIDARRAYOID);
    COUNT_WITH_HORIZON = "dispatch/queries/count_with_horizon.sql" (INT4ARRAYOID);
    UNFINISHED = "dispatch/queries/unfinished.sql" (UUIDARRAYOID, TIMESTAMPTZOID);
    REMOVE_REPEATED = "dispatch/queries/remove_repeated.sql" (UUIDARRAYOID);
    INSERT_DISPATCHES = "dispatch/queries/insert_dispatches.sql"
        {trigger: "schedule", key: "t.definition = u.key", conflict: ""}
        (UUIDARRAYOID, TIDARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID);
    INSERT_MISSING_DISPATCHES = "dispatch/queries/insert_dispatches.sql"
        {trigger: "schedule", key: "t.action_id = u.key", conflict: "ON CONFLICT (id) DO NOTHING RETURNING id"}
        (UUIDARRAYOID, UUIDARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID);
    BACKFILL_DISPATCHES = "dispatch/queries/insert_dispatches.sql"
        {trigger: "backfill", key: "t.action_id = u.key", conflict: "ON CONFLICT (id) DO NOTHING RETURNING id"}
        (UUIDARRAYOID, UUIDARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID);
    ADVANCE_LOCKED_TIMERS = "dispatch/queries/advance_timers.sql" {key: "t.ctid = u.key"}
        (TIDARRAYOID, INT4ARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, TEXTARRAYOID,
         TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID);
    ADVANCE_TIMERS = "dispatch/queries/advance_timers.sql" {key: "t.action_id = u.key"}
        (UUIDARRAYOID, INT4ARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, TEXTARRAYOID,
         TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID);
}

type Instant = DateTime<Utc>;
/// The position of a row in its table. A locked row stays there.
pub type RowTid = pg_sys::ItemPointerData;

/// A position among the timers, in the order in which they are due.
#[derive(Clone, Copy)]
pub struct DueCursor {
    pub due_at: Instant,
    timer: RowTid,
}

impl DueCursor {
    /// Before all timers that are due at an instant.
    pub fn before(due_at: Instant) -> DueCursor {
        DueCursor {
            due_at,
            timer: RowTid::default(),
        }
    }
}

/// A timer that this transaction has locked.
#[derive(Clone)]
pub struct LockedTimer {
    pub action: Uuid,
    pub due_at: Instant,
    pub next_run_at: Instant,
    pub last_run_at: Option<Instant>,
    pub run_count: i64,
    pub tid: RowTid,
    /// Dispatches ahead of their time.
    pub ahead: Option<Ahead>,
    /// The last occurrence, if all are dispatched.
    pub all_dispatched: Option<Instant>,
    /// The latest occurrence that has come due.
    pub ran_at: Option<Instant>,
    /// How often in a row the action could not be dispatched.
    pub error_count: i32,
}

impl LockedTimer {
    pub fn cursor(&self) -> DueCursor {
        DueCursor {
            due_at: self.due_at,
            timer: self.tid,
        }
    }

    fn read(row: &Row) -> LockedTimer {
        let last_run_at = row.instant(4);
        let ahead = row.instant(7).map(|first| Ahead {
            first,
            last: last_run_at.map_or(first, |last| last.max(first)),
        });
        let due_at = row.required_instant(2);
        LockedTimer {
            action: row.uuid(1),
            due_at,
            next_run_at: row.required_instant(3),
            last_run_at,
            run_count: row.required(5),
            tid: row.required(6),
            ahead,
            all_dispatched: row
                .required::<bool>(9)
                .then(|| last_run_at.unwrap_or(due_at)),
            ran_at: match ahead {
                Some(_) => row.instant(8),
                None => last_run_at,
            },
            error_count: row.required(10),
        }
    }
}

/// Locks timers that are due between the low-water mark and now.
pub fn lock_due(low_water: Instant, now: Instant, limit: i64) -> Vec<LockedTimer> {
    let arguments = [
        time::timestamptz(low_water).into(),
        time::timestamptz(now).into(),
        limit.into(),
    ];
    LOCK_DUE.with(|query| query.rows(&arguments, LockedTimer::read))
}

/// Some of the due timers that a batch which took all could not lock.
pub fn skipped_locked(low_water: Instant, now: Instant, locked: &[LockedTimer]) -> Vec<Uuid> {
    const MOST_LOGGED: i64 = 10;
    let arguments = [
        time::timestamptz(low_water).into(),
        time::timestamptz(now).into(),
        pg_uuids(locked.iter().map(|timer| timer.action)).into(),
        MOST_LOGGED.into(),
    ];
    SKIPPED_LOCKED.with(|query| query.rows(&arguments, |row| row.uuid(1)))
}

/// Locks timers that will be due, behind a position.
pub fn lock_due_ahead(after: DueCursor, until: Instant, limit: i64) -> Vec<LockedTimer> {
    let arguments = [
        time::timestamptz(after.due_at).into(),
        after.timer.into(),
        time::timestamptz(until).into(),
        limit.into(),
    ];
    LOCK_DUE_AHEAD.with(|query| query.rows(&arguments, LockedTimer::read))
}

/// What the dispatcher needs of a definition.
pub struct Definition {
    schedule: String,
    timezone: String,
    starts_at: Option<Instant>,
    ends_at: Option<Instant>,
    pub max_runs: Option<i32>,
    on_dst_gap: String,
    on_dst_fold: String,
    misfire: String,
    misfire_grace: Option<TimeDelta>,
    catchup_limit: i32,
    overlap: String,
    pub jitter: Option<TimeDelta>,
    horizon: Option<TimeDelta>,
    horizon_count: Option<i32>,
    notify_channel: Option<String>,
    provider: String,
    action_type: String,
    namespace: String,
    tenant: String,
    /// True if all finished dispatches are kept.
    pub keeps_history: bool,
    pub tid: RowTid,
    pub owner_id: i32,
    /// True if max_runs counts completed runs.
    pub counts_completed: bool,
    /// The bytes that payload and metadata take in each dispatch.
    size: i32,
    pub dedup_key: Option<String>,
    /// Without one, a setting decides.
    pub dedup_window: Option<TimeDelta>,
    pub on_duplicate: Option<String>,
}

impl Definition {
    /// As how many dispatches one of this action counts, where their number is limited.
    pub fn weight(&self) -> usize {
        decide::weight(self.size.unsigned_abs() as usize)
    }

    /// Are its occurrences dispatched ahead of their time?
    pub fn has_horizon(&self) -> bool {
        self.horizon.is_some() || self.horizon_count.is_some()
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    pub fn provider(&self) -> &str {
        &self.provider
    }

    pub fn action_type(&self) -> &str {
        &self.action_type
    }

    /// Can the dispatch of one carry the payload of the other?
    pub fn does_the_same_as(&self, other: &Definition) -> bool {
        self.provider == other.provider && self.action_type == other.action_type
    }

    /// The part that a decision depends on.
    pub fn stored(&self) -> StoredDefinition<'_> {
        StoredDefinition {
            schedule: &self.schedule,
            timezone: &self.timezone,
            starts_at: self.starts_at,
            ends_at: self.ends_at,
            on_dst_gap: &self.on_dst_gap,
            on_dst_fold: &self.on_dst_fold,
            misfire: &self.misfire,
            misfire_grace: self.misfire_grace,
            catchup_limit: self.catchup_limit,
            overlap: &self.overlap,
            horizon: self.horizon,
            horizon_count: self.horizon_count,
        }
    }

    /// The announcement of a dispatch of this action.
    pub fn announcement(&self, dispatch: &NewDispatch) -> Announcement<'_> {
        Announcement {
            id: dispatch.id,
            action_id: Some(dispatch.action),
            scheduled_at: dispatch.occurrence,
            namespace: &self.namespace,
            tenant: &self.tenant,
            provider: &self.provider,
            action_type: &self.action_type,
            channel: self.notify_channel.as_deref(),
        }
    }

    fn read(row: &Row) -> Definition {
        let span = |ordinal| row.get::<i64>(ordinal).map(TimeDelta::microseconds);
        Definition {
            schedule: row.required(2),
            timezone: row.required(3),
            starts_at: row.instant(4),
            ends_at: row.instant(5),
            max_runs: row.get(6),
            on_dst_gap: row.required(7),
            on_dst_fold: row.required(8),
            misfire: row.required(9),
            misfire_grace: span(10),
            catchup_limit: row.required(11),
            overlap: row.required(12),
            jitter: span(13),
            horizon: span(14),
            horizon_count: row.get(15),
            notify_channel: row.get(16),
            provider: row.required(17),
            action_type: row.required(18),
            namespace: row.required(19),
            tenant: row.required(20),
            keeps_history: row.required(21),
            tid: row.required(22),
            owner_id: row.required(23),
            counts_completed: row.required(24),
            size: row.required(25),
            dedup_key: row.get(26),
            dedup_window: span(27),
            on_duplicate: row.get(28),
        }
    }
}

pub fn read_definitions(actions: Vec<Uuid>) -> HashMap<Uuid, Definition> {
    let rows = READ_DEFINITIONS.with(|query| {
        query.rows(&[pg_uuids(actions).into()], |row| {
            (row.uuid(1), Definition::read(row))
        })
    });
    rows.into_iter().collect()
}

/// How many actions with a horizon each of these owners has.
pub fn count_with_horizon(owners: Vec<i32>) -> HashMap<i32, i64> {
    if owners.is_empty() {
        return HashMap::new();
    }
    let rows = COUNT_WITH_HORIZON
        .with(|query| query.rows(&[owners.into()], |row| (row.required(1), row.required(2))));
    rows.into_iter().collect()
}

/// The unfinished dispatches of these actions, by action.
pub fn unfinished(actions: Vec<Uuid>, now: Instant) -> HashMap<Uuid, Unfinished> {
    if actions.is_empty() {
        return HashMap::new();
    }
    let arguments = [pg_uuids(actions).into(), time::timestamptz(now).into()];
    let rows = UNFINISHED.with(|query| {
        query.rows(&arguments, |row| {
            let unfinished = Unfinished {
                pending: row.required(2),
                running: row.required(3),
                stale: row.required(4),
            };
            (row.uuid(1), unfinished)
        })
    });
    rows.into_iter().collect()
}

/// Removes new dispatches whose occurrence has a finished one, and returns which.
pub fn remove_repeated(dispatches: Vec<Uuid>) -> HashSet<Uuid> {
    if dispatches.is_empty() {
        return HashSet::new();
    }
    let arguments = [pg_uuids(dispatches).into()];
    let rows = REMOVE_REPEATED.with(|query| query.rows(&arguments, |row| row.uuid(1)));
    rows.into_iter().collect()
}

/// A dispatch to be inserted.
pub struct NewDispatch {
    pub id: Uuid,
    pub action: Uuid,
    pub occurrence: Instant,
    pub available_at: Instant,
    /// The position of the action's definition.
    pub definition: RowTid,
}

/// Inserts dispatches on the optimistic path: an existing dispatch is an error, and so is a definition that has moved.
pub fn insert_dispatches(new: &[NewDispatch]) {
    if new.is_empty() {
        return;
    }
    let definitions: Vec<RowTid> = new.iter().map(|one| one.definition).collect();
    let arguments = insert_arguments(definitions.into(), new);
    let inserted = INSERT_DISPATCHES.with(|query| query.execute(&arguments));
    expect_all(inserted, new.len());
}

/// Inserts dispatches on the verified path, and returns the ids of those that did not exist.
pub fn insert_missing_dispatches(new: &[NewDispatch]) -> HashSet<Uuid> {
    insert_verified(&INSERT_MISSING_DISPATCHES, new)
}

/// The same, for occurrences that `recur.backfill` asks for.
pub fn backfill_dispatches(new: &[NewDispatch]) -> HashSet<Uuid> {
    insert_verified(&BACKFILL_DISPATCHES, new)
}

fn insert_verified(query: &'static LocalKey<Query>, new: &[NewDispatch]) -> HashSet<Uuid> {
    if new.is_empty() {
        return HashSet::new();
    }
    let actions = pg_uuids(new.iter().map(|one| one.action));
    let arguments = insert_arguments(actions.into(), new);
    let rows = query.with(|query| query.rows(&arguments, |row| row.uuid(1)));
    rows.into_iter().collect()
}

fn insert_arguments<'a>(keys: DatumWithOid<'a>, new: &[NewDispatch]) -> [DatumWithOid<'a>; 4] {
    let instants = |of: fn(&NewDispatch) -> Instant| -> Vec<_> {
        new.iter().map(|one| time::timestamptz(of(one))).collect()
    };
    [
        pg_uuids(new.iter().map(|one| one.id)).into(),
        keys,
        instants(|one| one.occurrence).into(),
        instants(|one| one.available_at).into(),
    ]
}

/// Raises an error if a row has moved, which only a change by hand does to a locked row: the batch is then repeated on
/// the verified path.
fn expect_all(found: usize, expected: usize) {
    if found != expected {
        pgrx::error!("pg_recur: {found} of {expected} rows were where they had been");
    }
}

/// How a timer is advanced.
pub struct Advance {
    pub action: Uuid,
    pub timer: RowTid,
    pub runs: i32,
    pub fired: Option<Instant>,
    pub next_run_at: Option<Instant>,
    pub due_at: Option<Instant>,
    pub ended_reason: Option<&'static str>,
    /// The first dispatch ahead of its time.
    pub next_ahead: Option<Instant>,
    /// The latest occurrence that has come due, where some are ahead.
    pub ran_at: Option<Instant>,
}

/// Advances timers that this transaction has locked.
pub fn advance_locked_timers(advances: &[Advance]) {
    if advances.is_empty() {
        return;
    }
    let timers: Vec<RowTid> = advances.iter().map(|one| one.timer).collect();
    let arguments = advance_arguments(timers.into(), advances);
    let advanced = ADVANCE_LOCKED_TIMERS.with(|query| query.execute(&arguments));
    expect_all(advanced, advances.len());
}

/// Advances timers by their action, wherever the rows are.
pub fn advance_timers(advances: &[Advance]) {
    if advances.is_empty() {
        return;
    }
    let actions = pg_uuids(advances.iter().map(|one| one.action));
    let arguments = advance_arguments(actions.into(), advances);
    ADVANCE_TIMERS.with(|query| query.execute(&arguments));
}

fn advance_arguments<'a>(keys: DatumWithOid<'a>, advances: &'a [Advance]) -> [DatumWithOid<'a>; 8] {
    let instants = |of: fn(&Advance) -> Option<Instant>| -> Vec<_> {
        let instant = |one| of(one).map(time::timestamptz);
        advances.iter().map(instant).collect()
    };
    let runs: Vec<i32> = advances.iter().map(|one| one.runs).collect();
    let ended: Vec<_> = advances.iter().map(|one| one.ended_reason).collect();
    [
        keys,
        runs.into(),
        instants(|one| one.fired).into(),
        instants(|one| one.next_run_at).into(),
        instants(|one| one.due_at).into(),
        ended.into(),
        instants(|one| one.next_ahead).into(),
        instants(|one| one.ran_at).into(),
    ]
}

/// The next instant at which a timer is due.
pub fn next_instant(from: LowerBound) -> Option<Instant> {
    index_scan::first(installation::find()?.timers_due, from)
}
