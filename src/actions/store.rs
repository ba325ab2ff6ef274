//! The statements that read and write actions. Everything here runs as the engine.

use super::record::{Composite, Field, Record};
use super::values::{self, int4};
use crate::access::Visible;
use crate::pg::jsonb::{self, Jsonb};
use crate::pg::query::{Query, Row, fragment, pg_uuid, pg_uuids, queries};
use crate::pg::{columns, time};
use chrono::{DateTime, Utc};
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::{self, BuiltinOid};
use recur_core::action::{Action, Column, Definition, Journey, Timer, Withdrawn, journey};
use std::cell::Cell;
use std::collections::HashSet;
use std::thread::LocalKey;
use uuid::Uuid;

queries! {
    LOCK_TIMER = "actions/queries/lock_timer.sql" (UUIDOID, INT4ARRAYOID);
    LOCK_PROGRESS = "actions/queries/lock_progress.sql" (UUIDOID);
    CREATED_AHEAD = "actions/queries/created_ahead.sql" {lock: ""} (UUIDOID, TIMESTAMPTZOID);
    LOCK_AHEAD = "actions/queries/created_ahead.sql" {lock: "FOR UPDATE"} (UUIDOID, TIMESTAMPTZOID);
    READ_ACTION = "actions/queries/read_action.sql" {lock: ""} (UUIDOID);
    READ_ACTION_LOCKING_CONTEXT = "actions/queries/read_action.sql" {lock: "FOR UPDATE OF p"} (UUIDOID);
    INSERT_STATES = "actions/queries/insert_states.sql"
        (UUIDARRAYOID, BOOLARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, TEXTARRAYOID, JSONBARRAYOID,
         INT4ARRAYOID, INT4ARRAYOID);
    WITHDRAW = "actions/queries/withdraw.sql" (UUIDOID, UUIDARRAYOID);
    TOUCH_DEFINITION = "actions/queries/touch_definition.sql" (UUIDOID, TIMESTAMPTZOID);
    SET_MAX_COMPLETED = "actions/queries/set_max_completed.sql" (UUIDOID, INT4OID);
    DELETE_DEFINITION = "actions/queries/delete_definition.sql" (UUIDOID);
    UPDATE_TIMER = "actions/queries/update_timer.sql"
        (UUIDOID, BOOLOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID, INT4OID, TEXTOID, TEXTOID,
         TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID, BOOLOID);
}

/// The types of a query's own parameters, and of the columns of a definition, which follow them.
const fn with_definition<const ALL: usize>(own: &[BuiltinOid]) -> [BuiltinOid; ALL] {
    let mut types = [BuiltinOid::TEXTOID; ALL];
    let mut index = 0;
    while index < ALL {
        types[index] = match index < own.len() {
            true => own[index],
            false => values::parameter_type(Column::DEFINITION[index - own.len()].spec().kind),
        };
        index += 1;
    }
    types
}

/// The same for arrays of definitions.
const fn with_definitions<const ALL: usize>(own: &[BuiltinOid]) -> [BuiltinOid; ALL] {
    let mut types = with_definition(own);
    let mut index = own.len();
    while index < ALL {
        types[index] = values::array_type(Column::DEFINITION[index - own.len()].spec().kind);
        index += 1;
    }
    types
}

/// The columns of a definition that are none of recur-core's.
const OWN_COLUMNS: &str =
    "id, owner_id, duplicate, journey, journey_version, start_state, created_at, updated_at";

/// Declares queries whose last parameters are the columns of a definition.
macro_rules! definition_queries {
    ($($name:ident = $file:literal $types:ident ($($parameter:ident),* $(,)?);)*) => {
        thread_local! {
            $(static $name: Query = const {
                const OWN: &[BuiltinOid] = &[$(BuiltinOid::$parameter),*];
                const ALL: [BuiltinOid; OWN.len() + Column::DEFINITION.len()] = $types(OWN);
                Query {
                    sql: fragment!($file),
                    variant: &[("own", OWN_COLUMNS)],
                    parameters: &ALL,
                    plan: Cell::new(std::ptr::null_mut()),
                }
            };)*
        }
    };
}

definition_queries! {
    INSERT_ACTION = "actions/queries/insert_action.sql" with_definition
        (UUIDOID, INT4OID, BOOLOID, TIMESTAMPTZOID, BOOLOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TEXTOID, JSONBOID,
         INT4OID, INT4OID, TEXTOID, TEXTOID, TEXTOID);
    UPDATE_DEFINITION = "actions/queries/update_definition.sql" with_definition (UUIDOID, BOOLOID, TIMESTAMPTZOID);
    INSERT_DEFINITIONS = "actions/queries/insert_definitions.sql" with_definitions
        (INT4OID, UUIDARRAYOID, TIMESTAMPTZARRAYOID);
}

/// Locks the timer of an action, and so the action; false if the caller sees no such action.
pub fn lock_timer(id: Uuid, visible: &Visible) -> bool {
    let arguments = [pg_uuid(id).into(), visible.parameter().into()];
    LOCK_TIMER.with(|query| query.execute(&arguments)) > 0
}

/// Locks the dispatches of an action that were created ahead.
pub fn lock_ahead(id: Uuid, now: DateTime<Utc>) -> Vec<Uuid> {
    let arguments = [pg_uuid(id).into(), time::timestamptz(now).into()];
    LOCK_AHEAD.with(|query| query.rows(&arguments, |row| row.uuid(1)))
}

/// Keeps consumers from reporting on runs of an action until this transaction ends.
pub fn lock_progress(id: Uuid) {
    LOCK_PROGRESS.with(|query| query.execute(&[pg_uuid(id).into()]));
}

/// The state after a withdrawal of the dispatches that were created ahead, as far as a definition depends on it.
pub fn withdrawable(id: Uuid, now: DateTime<Utc>) -> Withdrawn {
    let arguments = [pg_uuid(id).into(), time::timestamptz(now).into()];
    Withdrawn {
        count: CREATED_AHEAD.with(|query| query.execute(&arguments)) as i64,
        last_run_at: None,
    }
}

/// Removes dispatches that were created ahead, and are locked.
pub fn withdraw(id: Uuid, ahead: &[Uuid]) -> Withdrawn {
    if ahead.is_empty() {
        return Withdrawn::default();
    }
    let arguments = [pg_uuid(id).into(), pg_uuids(ahead.iter().copied()).into()];
    Withdrawn {
        count: ahead.len() as i64,
        last_run_at: WITHDRAW
            .with(|query| query.row(&arguments, |row| row.instant(1)))
            .flatten(),
    }
}

/// What is stored of an action.
pub struct Stored {
    definition: Record,
    timer: Record,
    progress: Record,
    owner: Option<String>,
}

/// Reads an action. `locks_context` keeps consumers from changing the context until this transaction ends.
pub fn read(id: Uuid, locks_context: bool) -> Option<Stored> {
    // SAFETY: a variable of this process: the memory context of the caller, in which the rows have to live.
    let context = unsafe { pg_sys::CurrentMemoryContext };
    let query = match locks_context {
        true => &READ_ACTION_LOCKING_CONTEXT,
        false => &READ_ACTION,
    };
    let whole = |row: &Row, ordinal| row.required::<Composite>(ordinal).copy_to(context);
    let read = |row: &Row| (whole(row, 1), whole(row, 2), whole(row, 3), row.get(4));
    let found = query.with(|query| query.row(&[pg_uuid(id).into()], read));
    found.map(|(definition, timer, progress, owner)| Stored {
        definition: Record::of_composite(definition),
        timer: Record::of_composite(timer),
        progress: Record::of_composite(progress),
        owner,
    })
}

impl Stored {
    pub fn owner_id(&self) -> i32 {
        int4(self.definition.int("owner_id"))
    }

    /// When a person last changed the action.
    pub fn updated_at(&self) -> Option<DateTime<Utc>> {
        self.definition.instant("updated_at")
    }

    /// The name of the owner.
    pub fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// A column of any of the rows.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let rows = [&self.definition, &self.timer, &self.progress];
        rows.into_iter().find_map(|row| row.field(name))
    }

    pub fn action(&self) -> Action<Jsonb> {
        let (timer, progress) = (&self.timer, &self.progress);
        Action {
            definition: Definition::stored(|column| self.definition.value(column.name())),
            timer: Timer {
                enabled: timer.is_true("enabled"),
                next_run_at: timer.instant("next_run_at"),
                due_at: timer.instant("due_at"),
                last_run_at: timer.instant("last_run_at"),
                next_ahead: timer.instant("next_ahead"),
                ran_at: timer.instant("ran_at"),
                run_count: timer.int("run_count"),
                error_count: timer.int("error_count"),
                paused_reason: timer.text("paused_reason"),
                ended_reason: timer.text("ended_reason"),
                missed_from: timer.instant("missed_from"),
                paused_in_bulk: timer.is_true("paused_in_bulk"),
            },
            completed_count: progress.int("completed_count"),
            context: progress.value("context").as_json().copied(),
            context_version: progress.int("context_version"),
            duplicate: self.definition.is_true("duplicate"),
            journey: self.journey(),
        }
    }

    fn journey(&self) -> Option<Journey> {
        let [name, version, start_state] = journey::COLUMNS;
        Some(Journey {
            name: self.definition.text(name)?,
            version: self.definition.text(version)?,
            start_state: self.definition.text(start_state)?,
        })
    }
}

/// Inserts an action; false if another one of the owner has its identity.
pub fn insert(id: Uuid, owner_id: i32, action: &Action<Jsonb>, now: DateTime<Utc>) -> bool {
    let (timer, journey) = (&action.timer, action.journey.as_ref());
    let own = [
        pg_uuid(id).into(),
        owner_id.into(),
        action.duplicate.into(),
        time::timestamptz(now).into(),
        timer.enabled.into(),
        timer.next_run_at.map(time::timestamptz).into(),
        timer.due_at.map(time::timestamptz).into(),
        timer.paused_reason.as_deref().into(),
        action.context.into(),
        int4(action.context_version).into(),
        action.definition.max_completed().map(int4).into(),
        journey.map(|journey| journey.name.as_str()).into(),
        journey.map(|journey| journey.version.as_str()).into(),
        journey.map(|journey| journey.start_state.as_str()).into(),
    ];
    execute(&INSERT_ACTION, &action.definition, own) > 0
}

/// A new action: its id, and when it is created.
pub type NewRow<'a> = (Uuid, &'a Action<Jsonb>, DateTime<Utc>);

/// Inserts the definitions of actions, and returns which: not those whose identity another one of the owner has.
pub fn insert_definitions(owner_id: i32, rows: &[NewRow]) -> HashSet<Uuid> {
    check_order_of_columns();
    let instants: Vec<_> = rows.iter().map(|row| time::timestamptz(row.2)).collect();
    let mut arguments: Vec<DatumWithOid> = vec![
        owner_id.into(),
        pg_uuids(rows.iter().map(|row| row.0)).into(),
        instants.into(),
    ];
    arguments.extend(Column::DEFINITION.iter().map(|column| {
        let of_column = rows.iter().map(|row| row.1.definition.get(*column));
        values::parameters(*column, of_column)
    }));
    let inserted = INSERT_DEFINITIONS.with(|query| query.rows(&arguments, |row| row.uuid(1)));
    inserted.into_iter().collect()
}

/// Inserts the state of actions whose definitions were inserted.
pub fn insert_states(rows: &[NewRow]) {
    let actions = || rows.iter().map(|row| row.1);
    let instants = |instant: fn(&Timer) -> Option<DateTime<Utc>>| -> Vec<_> {
        actions()
            .map(|action| instant(&action.timer).map(time::timestamptz))
            .collect()
    };
    let enabled: Vec<bool> = actions().map(|action| action.timer.enabled).collect();
    let reasons: Vec<Option<&str>> = actions()
        .map(|action| action.timer.paused_reason.as_deref())
        .collect();
    let contexts: Vec<_> = actions().map(|action| action.context).collect();
    let versions: Vec<i32> = actions()
        .map(|action| int4(action.context_version))
        .collect();
    let ends: Vec<Option<i32>> = actions()
        .map(|action| action.definition.max_completed().map(int4))
        .collect();
    let arguments = [
        pg_uuids(rows.iter().map(|row| row.0)).into(),
        enabled.into(),
        instants(|timer| timer.next_run_at).into(),
        instants(|timer| timer.due_at).into(),
        reasons.into(),
        jsonb::array_of(&contexts),
        versions.into(),
        ends.into(),
    ];
    INSERT_STATES.with(|query| query.execute(&arguments));
}

/// Rewrites the definition of an action.
pub fn update_definition(id: Uuid, action: &Action<Jsonb>, now: DateTime<Utc>) {
    let own = [
        pg_uuid(id).into(),
        action.duplicate.into(),
        time::timestamptz(now).into(),
    ];
    execute(&UPDATE_DEFINITION, &action.definition, own);
}

fn execute<const COUNT: usize>(
    query: &'static LocalKey<Query>,
    definition: &Definition<Jsonb>,
    own: [DatumWithOid<'_>; COUNT],
) -> usize {
    check_order_of_columns();
    let columns = definition
        .iter()
        .map(|(column, value)| values::parameter(column, value));
    let arguments: Vec<DatumWithOid> = own.into_iter().chain(columns).collect();
    query.with(|query| query.execute(&arguments))
}

/// The queries take the columns of a definition in the order of the table, which must be that of recur-core.
fn check_order_of_columns() {
    thread_local! {
        static IS_CHECKED: Cell<bool> = const { Cell::new(false) };
    }
    if IS_CHECKED.get() {
        return;
    }
    let stored = columns::expand(&format!("{{{{definitions except {OWN_COLUMNS}}}}}"));
    let known: Vec<&str> = Column::DEFINITION
        .iter()
        .map(|column| column.name())
        .collect();
    if stored != known.join(", ") {
        pgrx::error!(
            "pg_recur: recur_internal.definitions has other columns than this version of pg_recur"
        );
    }
    IS_CHECKED.set(true);
}

/// Notes that a person has changed an action without changing its definition.
pub fn touch_definition(id: Uuid, now: DateTime<Utc>) {
    let arguments = [pg_uuid(id).into(), time::timestamptz(now).into()];
    TOUCH_DEFINITION.with(|query| query.execute(&arguments));
}

pub fn update_timer(id: Uuid, timer: &Timer) {
    let arguments = [
        pg_uuid(id).into(),
        timer.enabled.into(),
        timer.next_run_at.map(time::timestamptz).into(),
        timer.due_at.map(time::timestamptz).into(),
        timer.last_run_at.map(time::timestamptz).into(),
        timer.run_count.into(),
        int4(timer.error_count).into(),
        timer.paused_reason.as_deref().into(),
        timer.ended_reason.as_deref().into(),
        timer.missed_from.map(time::timestamptz).into(),
        timer.next_ahead.map(time::timestamptz).into(),
        timer.ran_at.map(time::timestamptz).into(),
        timer.paused_in_bulk.then_some(true).into(),
    ];
    UPDATE_TIMER.with(|query| query.execute(&arguments));
}

/// Writes the number of completed runs after which reports end the action.
pub fn set_max_completed(id: Uuid, max_completed: Option<i64>) {
    let arguments = [pg_uuid(id).into(), max_completed.map(int4).into()];
    SET_MAX_COMPLETED.with(|query| query.execute(&arguments));
}

/// Deletes an action with all of its rows, except for dispatches and events.
pub fn delete(id: Uuid) {
    DELETE_DEFINITION.with(|query| query.execute(&[pg_uuid(id).into()]));
}
